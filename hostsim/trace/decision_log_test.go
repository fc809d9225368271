package trace

import (
	"errors"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
)

const logLines = `[2026-11-30 05:02:00.100][15][info][wasm] wasm log pinwheel: started
[2026-11-30 05:02:06.959][15][info][wasm] [source/x.cc:1] wasm log pinwheel: {"pinwheel":"decision","time":"2026-11-30T05:02:06Z","pool":"default","session":"e9d10d90","reason":"placed","replica":"10.0.0.2:8000","open_sessions":{"10.0.0.1:8000":3}}
{"pinwheel":"decision","time":"2026-11-30T05:02:08Z","pool":"default","session":null,"reason":"keyless","replica":"10.0.0.1:8000","open_sessions":{}}
{"pinwheel":"decision","time":"2026-11-30T05:02:08Z","pool":"default","session":"e9d10d90","reason":"followed","replica":"10.0.0.1:8000"}
{"pinwheel":"decision","time":"2026-11-30T05:02:26Z","pool":"default","session":"e9d10d90","reason":"pinned","replica":"10.0.0.2:8000"} trailing
{"pinwheel":"decision","time":"2026-11-30T05:02:25Z","pool":"default","session":"e9d10d90","reason":"pinned","replica":"10.0.0.2:8000"}
{"pinwheel":"decision","time":"2026-11-30T05:02:07Z","pool":"other","session":"e9d10d90","reason":"placed","replica":null}
`

func TestDecisionLog(t *testing.T) {
	r, format, err := Open(strings.NewReader(logLines), Options{BlockTokens: 100, Log: LogAssumptions{FirstPrompt: 1000, PerTurn: 150, Output: 50, System: 320, API: 4 * time.Second}})
	if err != nil || format != DecisionLog {
		t.Fatalf("format %q, %v", format, err)
	}
	got, err := ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	const system = classSpace | 320<<32
	turn := func(own uint64, input int, at, think time.Duration) Turn {
		return Turn{At: at * time.Second, Think: think * time.Second, Input: input, Output: 50, API: 4 * time.Second,
			Blocks: []Run{{system | 1, 3}, {own<<32 | 4, input/100 - 3}}}
	}
	want := []Session{
		{ID: "default/e9d10d90", Turns: []Turn{turn(1, 1000, 0, 0), turn(1, 1150, 20, 16), turn(1, 1300, 20, 0)}},
		{ID: "other/e9d10d90", Start: time.Second, Turns: []Turn{turn(2, 1000, 0, 0)}},
		{ID: "default/keyless 1", Start: 2 * time.Second, Turns: []Turn{turn(3, 1000, 0, 0)}},
	}
	for i := range want {
		want[i].BlockTokens, want[i].System, want[i].Replays = 100, 320, true
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// What the plugin's page shows of the log is read.
func TestDecisionLogOfThePage(t *testing.T) {
	page, err := os.ReadFile("../../docs/why-this-replica.md")
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```jsonl\n(.*?)```").FindSubmatch(page)
	if block == nil {
		t.Fatal("the page shows no line")
	}
	r, format, err := Open(strings.NewReader(string(block[1])), Options{})
	if err != nil || format != DecisionLog {
		t.Fatalf("format %q, %v", format, err)
	}
	s, err := r.Next()
	if err != nil || s.ID != "default/e9d10d90" || s.Turns[0].Input != 11_400 || s.Turns[0].Output != 245 {
		t.Errorf("%+v, %v", s, err)
	}
	checkSession(t, s)
}

func TestDecisionLogBadLines(t *testing.T) {
	const good = `{"pinwheel":"decision","time":"2026-11-30T05:02:08Z","pool":"p","session":"a","reason":"placed","replica":null}`
	checkBadRows(t, Options{}, good, strings.Replace(good, `"a"`, `"b"`, 1), []badRow{
		{"cut off", good[:60], "unexpected EOF"},
		{"no time", strings.Replace(good, "time", "times", 1), "time, reason: missing"},
		{"no reason", strings.Replace(good, "reason", "because", 1), "time, reason: missing"},
		{"a bad time", strings.Replace(good, "2026", "soon", 1), "soon"},
		{"a hundred years on", strings.Replace(good, "2026", "2126", 1), "is not a time"},
	})
}

func TestOptionsAreChecked(t *testing.T) {
	for _, o := range []Options{{BlockTokens: -1}, {BytesPerToken: -1}, {Log: LogAssumptions{FirstPrompt: -1}}, {Log: LogAssumptions{Output: 3000}},
		{Log: LogAssumptions{System: 12_000}}, {Log: LogAssumptions{API: -1}}} {
		if _, _, err := Open(strings.NewReader("{}"), o); !errors.Is(err, ErrOptions) {
			t.Errorf("%+v: error %v", o, err)
		}
	}
}
