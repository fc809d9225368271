package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A report's head names what one replay has and another has not.
func TestReplaySetup(t *testing.T) {
	plain := setupOf(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--config", `{"session":{"idle_timeout": "5s"}}`}, `configuration: {"session":{"idle_timeout":"5s"}}`},
		{[]string{"--config", `{"admin":{"secret":"hush","path":"/x"},"pools":[{"secret":"hush"}]}`}, `configuration: {"admin":{"path":"/x","secret":"***"},"pools":[{"secret":"***"}]}`},
		{[]string{"--config", `{"key":"` + strings.Repeat("v", 300) + `"}`}, `configuration: {"key":"` + strings.Repeat("v", 192) + "..."},
		{[]string{"--config", `{"agreement":{"password":"hush"}}`}, `configuration: {"agreement":{"password":"***"}}`},
		{[]string{"--etcd-latency", "1ms"}, "note: --etcd-latency does nothing: no gateway asks etcd"},
		{[]string{"--event", "etcd_down at 1s", "--config", `{"agreement":{"kind":"etcd"}}`}, "note: events of etcd do nothing: no gateway asks it"},
		{[]string{"--sessions", "99"}, "note: --sessions 99 is more than the trace has"},
		{[]string{"--deal", "random"}, "note: --deal random does nothing with one gateway"},
		{[]string{"--pool-tokens", "100"}, "too long: 5 of 5 turns: prompt and answer are more than the KV pool of 64 tokens, and nobody serves them"},
		{[]string{"--keep-sessions"}, "sessions: never released"},
		{[]string{"--overhead", "250ms"}, "overhead: 250ms a turn"},
		{[]string{"--overhead", "0"}, "overhead: 0s a turn"},
		{[]string{"--gateways", "3", "--deal", "random"}, "gateways: 3, turns dealt random"},
		{[]string{"--clients", "7"}, "clients: 7"},
		{[]string{"--open-loop"}, "load: all sessions at once, turns when recorded"},
		{[]string{"--open-loop", "--time-scale", "0.5"}, "load: all sessions at once, turns when recorded x 0.5"},
		{[]string{"--event", "fail 1 at 2s for 3s", "--event", "join at 4s"}, "events: fail 1 at 2s for 3s; join at 4s"},
		{slices.Repeat([]string{"--event", "join at 4s"}, 11), "events: " + strings.Repeat("join at 4s; ", 8) + "and 3 more"},
	} {
		if got := setupOf(t, append([]string{"--policy", "session_hash"}, c.args...)...); !slices.Contains(got, c.want) || slices.Contains(plain, c.want) {
			t.Errorf("%v: %q, want among them %q", c.args, got, c.want)
		}
	}
	if got := setupOf(t, "--workers", "3", "--policy", "random"); !slices.Contains(got, "workers: 3 a gateway") {
		t.Errorf("workers of the plugin: %q", got)
	}
	if got := setupOf(t, "--workers", "3", "--policy", "random", "--in-process"); !slices.Equal(got, plain) {
		t.Errorf("%q without the plugin, %q by default", got, plain)
	}
}

// The load is what the trace has of it: a file without pauses has none that are played, and one without times none at all.
func TestReplaySetupOfTraces(t *testing.T) {
	dir := t.TempDir()
	still, timed := filepath.Join(dir, "still.jsonl"), filepath.Join(dir, "timed.jsonl")
	for file, at := range map[string]string{still: "0", timed: "9000"} {
		text := `{"timestamp":0,"input_length":600,"output_length":2,"hash_ids":[1,2]}` + "\n" +
			`{"timestamp":` + at + `,"input_length":600,"output_length":2,"hash_ids":[1,3]}` + "\n"
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		trace, open, want string
	}{
		{still, "false", "load: all sessions at once, no pauses are recorded"},
		{still, "true", "load: all sessions at once, no times are recorded: a turn follows the answer to the one before"},
		{timed, "false", "load: all sessions at once, no pauses are recorded; arrivals are not played: --open-loop plays them"},
		{timed, "true", "load: all sessions at once, turns when recorded"},
	} {
		args := []string{"--trace", c.trace, "--sessions", "0", "--think", "recorded", "--policy", "session_hash", "--open-loop=" + c.open}
		if got := setupOf(t, args...); !slices.Contains(got, c.want) {
			t.Errorf("%s: %q, want among them %q", c.open, got, c.want)
		}
	}
}

func setupOf(t *testing.T, args ...string) (lines []string) {
	t.Helper()
	if len(args) == 0 {
		args = []string{"--policy", "session_hash"}
	}
	for _, f := range replayJSON(t, append([]string{"--sessions", "1", "--seeds", "1"}, args...)...).Setup {
		lines = append(lines, fmt.Sprintf("%s: %s", f.Name, f.Value))
	}
	return lines
}
