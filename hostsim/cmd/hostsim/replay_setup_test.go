package main

import (
	"fmt"
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
