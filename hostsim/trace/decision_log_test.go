package trace

import (
	"errors"
	"io"
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

// Requests without a session are sessions of one turn, however the log says that there is none.
func TestDecisionLogKeyless(t *testing.T) {
	const null = `{"pinwheel":"decision","time":"2026-11-30T05:02:08Z","pool":"p","session":null,"reason":"keyless"}` + "\n"
	empty := strings.Replace(null, "null", `""`, 1)
	absent := strings.Replace(null, `"session":null,`, "", 1)
	r, _, err := Open(strings.NewReader(empty+null+empty+absent), Options{})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ReadAll(r)
	if err != nil || len(got) != 4 {
		t.Fatalf("%d sessions, want 4; %v", len(got), err)
	}
	for _, s := range got {
		if len(s.Turns) != 1 {
			t.Errorf("%s has %d turns", s.ID, len(s.Turns))
		}
	}
}

// A decision is known by what its JSON says: spaces, the order of the keys and what stands around it play no part.
func TestDecisionLogIsJSON(t *testing.T) {
	for _, line := range []string{
		`{"pinwheel": "decision", "time": "2026-11-30T05:02:08Z", "pool": "p", "session": "a", "reason": "placed"}`,
		`  { "pinwheel" : "decision" , "session":"a","pool":"p","reason":"placed","time":"2026-11-30T05:02:08Z" }  `,
		`{"time":"2026-11-30T05:02:08Z","open_sessions":{"x":1},"pool":"p","session":"a","reason":"placed","pinwheel":"decision"}`,
		`[info] {wasm} {"source":1} {"pinwheel":"decision","time":"2026-11-30T05:02:08Z","pool":"p","session":"a","reason":"placed"} {`,
	} {
		for _, around := range []string{"", "{\"pinwheel\":\"status\"}\n", "plugin \"pinwheel\" {\n", "[info] \"decision\"\n"} {
			r, format, err := Open(strings.NewReader(around+line+"\n"+around), Options{})
			if err != nil || format != DecisionLog {
				t.Errorf("%s: format %q, %v", around+line, format, err)
				continue
			}
			if got, err := ReadAll(r); err != nil || len(got) != 1 || got[0].ID != "p/a" {
				t.Errorf("%s: %+v, %v", around+line, got, err)
			}
		}
	}
}

// A text without a decision is not an empty trace, and a log of bad decisions is.
func TestDecisionLogWithoutDecisions(t *testing.T) {
	for _, tt := range []struct{ text, want string }{
		{"", "0 lines, none of them a decision of the plugin's"},
		{strings.Repeat("[info] started\n\n", 3), "6 lines, none of them"},
		{`{"id":"a","r":[]}`, "1 lines, none of them"},
		{`{"pinwheel":"decision","time":"2026-11-30T05:02:08Z","pool":"p","session":"a","reason":"followed"}`, ""},
		{`{"pinwheel":"decision"}`, ""},
	} {
		r, _, err := Open(strings.NewReader(tt.text), Options{Format: DecisionLog})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			_, err = r.Next()
			for errors.Is(err, ErrBadLine) {
				_, err = r.Next()
			}
			if tt.want == "" && !errors.Is(err, io.EOF) || tt.want != "" && (!errors.Is(err, ErrNoDecision) || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%q: error %v, want %q", tt.text, err, tt.want)
			}
		}
	}
}

func TestDecisionLogBadLines(t *testing.T) {
	const good = `{"pinwheel":"decision","time":"2026-11-30T05:02:08Z","pool":"p","session":"a","reason":"placed","replica":null}`
	checkBadRows(t, Options{}, good, strings.Replace(good, `"a"`, `"b"`, 1), []badRow{
		{"cut off", good[:60], "unexpected EOF"},
		{"no object", `"pinwheel":"decision"`, "not in a JSON object"},
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
