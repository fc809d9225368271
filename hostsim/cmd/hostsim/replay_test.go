package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// small is a replay that takes a moment: eight of the built-in sessions, without pauses.
var small = []string{"replay", "--wasm", shipped, "--sessions", "8", "--think", "none", "--replicas", "3", "--seeds", "2"}

func smallReplay(args ...string) []string { return append(small[:len(small):len(small)], args...) }

func replayJSON(t *testing.T, args ...string) *replay.Result {
	t.Helper()
	code, stdout, stderr := command(smallReplay(append(args, "--json", "-")...)...)
	if code != 0 {
		t.Fatalf("%v: exit %d: %s", args, code, stderr)
	}
	var r replay.Result
	if err := json.Unmarshal([]byte(stdout), &r); err != nil {
		t.Fatalf("%v in %s", err, stdout)
	}
	for i := range r.Policies {
		for j := range r.Policies[i].Seeds {
			r.Policies[i].Seeds[j].DecisionsPerSecond = 0 // of this machine's time
		}
	}
	return &r
}

// What scripts read is there under its name, and one command line always gives one result.
func TestReplayJSON(t *testing.T) {
	args := []string{"--policy", "sticky_least_loaded,per_request_round_robin"}
	r := replayJSON(t, args...)
	if again := replayJSON(t, args...); !reflect.DeepEqual(r, again) {
		t.Error("the same command line gave two results")
	}
	if len(r.Policies) != 2 || r.Policies[0].Policy != "sticky_least_loaded" || r.Policies[0].Through != "wasm" || r.Policies[1].Through != "baseline" {
		t.Fatalf("%+v", r.Policies)
	}
	pinned, spread := r.Policies[0].Seeds, r.Policies[1].Seeds
	for i := range 2 {
		if pinned[i].Seed != uint64(i+1) || pinned[i].Sessions != 8 || pinned[i].Turns != spread[i].Turns || pinned[i].Moves != 0 || pinned[i].Errors != 0 {
			t.Errorf("seed %d: %+v", i+1, pinned[i])
		}
		if pinned[i].HitRate <= spread[i].HitRate || pinned[i].HitRate > r.Ideal {
			t.Errorf("seed %d: hit rates %.3f pinned, %.3f spread, ideal %.3f", i+1, pinned[i].HitRate, spread[i].HitRate, r.Ideal)
		}
	}
	if pinned[0].Wall == pinned[1].Wall {
		t.Error("two seeds, one wall time")
	}
	text, err := json.Marshal(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.Fields("policies policy seeds wall_s t95_s hit_rate requests_max_min busy_max_min ttft_p50_s ttft_p99_s preemptions") {
		if !bytes.Contains(text, []byte(`"`+key+`":`)) {
			t.Errorf("no %s", key)
		}
	}
}

// The plugin and the policy in this process give one result, not only one decision.
func TestReplayInProcess(t *testing.T) {
	args := []string{"--policy", "sticky_least_loaded,cache_aware", "--gateways", "2", "--event", "drain 1 at 20s", "--event", "remove 2 at 40s", "--event", "join at 60s"}
	wasm, within := replayJSON(t, args...), replayJSON(t, append(args, "--in-process")...)
	for i := range wasm.Policies {
		if p := &within.Policies[i]; p.Through != "in process" {
			t.Errorf("through %s", p.Through)
		}
		a, b := wasm.Policies[i].Seeds, within.Policies[i].Seeds
		if !reflect.DeepEqual(a, b) {
			t.Errorf("%s differs:\n%+v\n%+v", wasm.Policies[i].Policy, a, b)
		}
		if moves := a[0].Moves + a[1].Moves; moves == 0 {
			t.Error("a replica went, and nobody moved")
		}
	}
}

// The table goes to standard output, progress to standard error, files where they are asked for.
func TestReplayWritesReports(t *testing.T) {
	dir := t.TempDir()
	page, figures := filepath.Join(dir, "r.html"), filepath.Join(dir, "r.json")
	code, stdout, stderr := command(smallReplay("--policy", "session_hash", "--html", page, "--json", figures)...)
	if code != 0 {
		t.Fatalf("exit %d: %s", code, stderr)
	}
	for _, want := range []string{"8 sessions", "3 replicas", "session_hash", "hit rate"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in\n%s", want, stdout)
		}
	}
	if !strings.Contains(stderr, "100% of ") {
		t.Errorf("progress: %s", stderr)
	}
	html, err := os.ReadFile(page)
	if err != nil || !bytes.Contains(html, []byte("session_hash")) {
		t.Errorf("%s: %d bytes, %v", page, len(html), err)
	}
	var r replay.Result
	text, err := os.ReadFile(figures)
	if err != nil || json.Unmarshal(text, &r) != nil || len(r.Policies) != 1 {
		t.Errorf("%s: %v", figures, err)
	}
}

func TestReplayHelpNamesWhatThereIs(t *testing.T) {
	_, stdout, _ := command("replay", "--help")
	for _, name := range append(append(policy.Names(), replay.Baselines()...), "fail N at T", "H100", "qwen3-32b", "mooncake-compact") {
		if !strings.Contains(stdout, name) {
			t.Errorf("no %s in the help", name)
		}
	}
}

func TestReplayRefuses(t *testing.T) {
	dir := t.TempDir()
	bad := filepath.Join(dir, "bad.jsonl")
	if err := os.WriteFile(bad, []byte("{\"id\":\"a\",\"r\":[]}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	empty := filepath.Join(dir, "empty.jsonl")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	binary := filepath.Join(dir, "binary")
	if err := os.WriteFile(binary, []byte{1, 2, 3}, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"--policy", "nearest"}, exitUsage, `there is no policy "nearest": choose of sticky_least_loaded, `},
		{[]string{"--policy", "random,random"}, exitUsage, "random twice"},
		{[]string{"--policy", ""}, exitUsage, "--policy names none"},
		{[]string{"--replicas", "0"}, exitUsage, "--replicas 0 is outside 1 to 1024"},
		{[]string{"--seeds", "0"}, exitUsage, "--seeds 0"},
		{[]string{"--gpu", "K80"}, exitUsage, "H100, H200, GB200"},
		{[]string{"--model", "gpt"}, exitUsage, "qwen3-32b"},
		{[]string{"--tp", "1", "--model", "nemotron-3-super"}, exitUsage, "does not fit"},
		{[]string{"--pool-tokens", "10"}, exitUsage, "raise --pool-tokens"},
		{[]string{"--engine", bad, "--tp", "2"}, exitUsage, "--engine says what a server is: leave out --gpu, --model and --tp"},
		{[]string{"--engine", bad}, exitFailed, "--engine: " + bad + ": engine file: "},
		{[]string{"--engine", filepath.Join(dir, "none")}, exitFailed, "--engine: open "},
		{[]string{"--think", "much"}, exitUsage, "none, recorded, rl"},
		{[]string{"--time-scale", "0"}, exitUsage, "--think none"},
		{[]string{"--deal", "odd"}, exitUsage, "round_robin, random, session"},
		{[]string{"--event", "fail 9 at 1s"}, exitUsage, "no replica 9"},
		{[]string{"--etcd-latency", "0"}, exitUsage, "--etcd-latency 0s is outside 1us to 1h"},
		{[]string{"--in-process", "--config", `{"agreement":{"kind":"etcd"}}`}, exitUsage, "--in-process has no etcd"},
		{[]string{"--event", "explode at 1s"}, exitUsage, "fail N at T"},
		{[]string{"--events", filepath.Join(dir, "none")}, exitFailed, "--events"},
		{[]string{"--json", filepath.Join(dir, "no", "x.json")}, exitUsage, "there is no folder"},
		{[]string{"--html", dir}, exitUsage, "is a folder"},
		{[]string{"--html", "-"}, exitUsage, "name a file"},
		{[]string{"--html", filepath.Join(dir, "x"), "--json", dir + "/./x"}, exitUsage, "name two files"},
		{[]string{"--overhead", "1000000h"}, exitUsage, "outside 0 to 8760h"},
		{[]string{"--event", "update every 1s pause 1s"}, exitUsage, "no time between them"},
		{[]string{"--replicas", "1024", "--event", "join at 1s", "--in-process"}, exitUsage, "1025 replicas with those that join"},
		{[]string{"--trace", os.DevNull}, exitFailed, "no plain file"},
		{[]string{"--trace", binary}, exitFailed, "groups by --format"},
		{[]string{"--goal-t95", "1m"}, exitUsage, "give that, too"},
		{[]string{"--advise"}, exitUsage, "needs a goal"},
		{[]string{"--advise", "--goal-hit", ".5", "--policy", "random,cache_aware"}, exitUsage, "--advise takes one policy; 2 are given"},
		{[]string{"--gpu", "A100"}, exitUsage, "others go into a file for --engine, see examples/engines"},
		{[]string{"--model", "x"}, exitUsage, "others go into a file for --engine, see examples/engines"},
		{[]string{"extra.jsonl"}, exitUsage, "did you mean --trace extra.jsonl?"},
		{[]string{"extra", "--trace", bad}, exitUsage, "takes flags only, not 1 arguments"},
		{[]string{"--advise", "--goal-hit", "2"}, exitUsage, "outside 0 to 1"},
		{[]string{"--advise", "--goal-hit", ".5", "--event", "join at 1s"}, exitUsage, "leave out --event"},
		{[]string{"extra"}, exitUsage, "flags only"},
		{[]string{"--trace", filepath.Join(dir, "none")}, exitFailed, "or leave it out for the built-in trace"},
		{[]string{"--trace", bad}, exitFailed, "hostsim: " + bad + ": trace: bad line 1: r: no requests (hostsim trace convert leaves"},
		{[]string{"--trace", empty}, exitFailed, "empty.jsonl"},
		{[]string{"--trace", bad, "--format", "csv"}, exitUsage, "choose one of weka, "},
		{[]string{"--wasm", filepath.Join(dir, "pinwheel.wasm")}, exitFailed, "make wasm"},
		{[]string{"--config", `{"cache_aware":{"cache_treshold":1}}`}, exitFailed, "sticky_least_loaded, seed "},
		{[]string{"--config", `{"cache_aware":{"cache_treshold":1}}`}, exitFailed, "cache_threshold"},
		{[]string{"--config", `{"session":{"idle_timeout":"soon"}}`, "--in-process"}, exitFailed, "soon"},
	} {
		code, stdout, stderr := command(smallReplay(c.args...)...)
		lines := strings.Split(strings.TrimSpace(stderr), "\n")
		if code != c.code || !strings.Contains(stderr, c.says) || stdout != "" {
			t.Errorf("%v: exit %d, %q, want %d and %q", c.args, code, stderr, c.code, c.says)
		}
		if code == exitUsage && len(lines) != 2 {
			t.Errorf("%v: %d lines: %s", c.args, len(lines), stderr)
		}
	}
}

// A cap of recorded pauses says nothing about drawn ones.
func TestReplayThinkCap(t *testing.T) {
	wallOf := func(args ...string) float64 {
		return replayJSON(t, append(args, "--policy", "session_hash", "--seeds", "1")...).Policies[0].Seeds[0].Wall
	}
	if drawn, capped := wallOf("--think", "rl"), wallOf("--think", "rl", "--think-cap", "0s"); drawn != capped {
		t.Errorf("drawn pauses: %v s, and %v s with a cap of recorded ones", drawn, capped)
	}
	if none, capped := wallOf(), wallOf("--think", "recorded", "--think-cap", "0s"); none != capped {
		t.Errorf("no pauses: %v s, and %v s with recorded ones cut to nothing", none, capped)
	}
}

// Zero is no overhead, and not the default.
func TestReplayOverhead(t *testing.T) {
	r := replayJSON(t, "--policy", "session_hash", "--seeds", "1", "--overhead", "0s")
	if none := r.Policies[0].Seeds[0].QueueP50; none >= .1 {
		t.Errorf("half of the turns reach an engine after %v s or more", none)
	}
}

// A sub-agent follows its parent whatever the seed: the built-in trace has none, so one with them is played.
func TestReplaySubAgents(t *testing.T) {
	file := filepath.Join(t.TempDir(), "t.jsonl")
	row := `{"id":"a","tool":0,"sys":0,"r":[[0,640,9,0,1,[0,10]],{"t":2,"sub":[[0,640,9,0,1,[0,10]]]},[60,1280,9,57,1,[10,10]]]}` + "\n"
	if err := os.WriteFile(file, []byte(row), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := command("replay", "--trace", file, "--replicas", "1", "--seeds", "1", "--policy", "session_hash", "--json", "-")
	var r replay.Result
	if err := json.Unmarshal([]byte(stdout), &r); code != 0 || err != nil {
		t.Fatalf("exit %d: %v, %s", code, err, stderr)
	}
	spans := map[string][]replay.TurnSpan{}
	for _, s := range r.Policies[0].Seeds[0].Slowest {
		spans[s.Session] = s.Turns
	}
	if len(spans) != 2 || spans["a/sub1@1"][0].Sent < spans["a@1"][0].End {
		t.Errorf("the sub-agent does not wait for its parent's turn: %+v", spans)
	}
}

// Ctrl-C ends a replay at once, and nothing half done is left.
func TestReplayInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	figures := filepath.Join(t.TempDir(), "r.json")
	var stdout, stderr bytes.Buffer
	code := run(ctx, smallReplay("--in-process", "--json", figures), &stdout, &stderr)
	if code != exitFailed || !strings.Contains(stderr.String(), "hostsim: replay: interrupted") || stdout.Len() > 0 {
		t.Errorf("exit %d, %q, %q", code, stdout.String(), stderr.String())
	}
	if _, err := os.Stat(figures); err == nil {
		t.Error("a file was written")
	}
}

// Events come from lines and a file; a comment is none.
func TestReplaySchedule(t *testing.T) {
	file := filepath.Join(t.TempDir(), "events")
	if err := os.WriteFile(file, []byte("# before\n\nfail 1 at 2s for 3s # after\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := replayFlags{events: []string{"join at 1s"}, eventsFile: file, replicas: 2}
	events, err := f.schedule()
	if got := fmt.Sprint(events); err != nil || got != "[join at 1s fail 1 at 2s for 3s]" {
		t.Errorf("%s, %v", got, err)
	}
}
