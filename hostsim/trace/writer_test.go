package trace

import (
	"bytes"
	"cmp"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// written writes sessions and returns the text.
func written(t *testing.T, sessions []Session, o Options) string {
	t.Helper()
	var out bytes.Buffer
	w, err := NewWriter(&out, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		if err := w.Write(s); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func reread(t *testing.T, text string, o Options) []Session {
	t.Helper()
	r, format, err := Open(strings.NewReader(text), Options{BlockTokens: o.BlockTokens, BytesPerToken: o.BytesPerToken, Log: o.Log})
	if err != nil || format != o.Format {
		t.Fatalf("format %q, %v; want %q", format, err, o.Format)
	}
	sessions, err := ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	return sessions
}

// What was read, written and read again is what was read, but for the names of blocks, in each format that is written.
func TestRoundTrips(t *testing.T) {
	groups, err := ReadAll(generate(t, GenerateOptions{Sessions: 12, System: 3000, GroupSize: 4}))
	if err != nil {
		t.Fatal(err)
	}
	plain := reread(t, strings.Join(inOrder(t), "\n"), Options{Format: MooncakePlain})
	back := reread(t, `{"id":"a","tool":64,"sys":0,"r":[[0,200,1,0,null,[0,3]],[1,64,1,0,1,[1]],[2,192,1,0,1,[1,[[2,2]]]],[3,192,1,0,1,[0,[[3,1],[1,2]]]]]}`, Options{Format: WEKA})
	tests := []struct {
		name     string
		sessions []Session
		o        Options
	}{
		{"weka that goes back to blocks of before", back, Options{Format: WEKA}},
		{"weka", sessionsOf(t, "testdata/weka_cc_24.ci.compact.jsonl", Options{}), Options{Format: WEKA}},
		{"weka with sub-agents", withSubAgents(sessionsOf(t, "testdata/weka_cc_215.rl-like.compact.jsonl", Options{})), Options{Format: WEKA}},
		{"weka-plain", sessionsOf(t, "testdata/weka_cc_2.jsonl.gz", Options{}), Options{Format: WEKAPlain}},
		{"mooncake", plain, Options{Format: MooncakePlain}},
		{"mooncake-compact", sessionsOf(t, mooncakeConversation, Options{}), Options{Format: MooncakeCompact}},
		{"groups", groups, Options{Format: Groups}},
		{"chat", sessionsOf(t, tauBench, Options{}), Options{Format: Chat}},
		{"chat of nemo-gym", sessionsOf(t, neMoGym, Options{}), Options{Format: Chat}},
		{"decision-log", reread(t, logLines, Options{Format: DecisionLog}), Options{Format: DecisionLog}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, want := renumbered(reread(t, written(t, tt.sessions, tt.o), tt.o)), renumbered(tt.sessions)
			if tt.o.Format == Chat {
				// The text is made up: what sessions shared of the old one is not in it beyond their first turns.
				got, want = alone(got), alone(want)
			}
			if len(got) != len(want) {
				t.Fatalf("%d sessions, want %d", len(got), len(want))
			}
			for i := range got {
				if !reflect.DeepEqual(got[i], want[i]) {
					t.Fatalf("session %d:\ngot  %+v\nwant %+v", i, got[i], want[i])
				}
			}
		})
	}
}

// withSubAgents leaves the sessions that have sub-agents, and these.
func withSubAgents(sessions []Session) []Session {
	parents := map[string]bool{}
	for _, s := range sessions {
		parents[s.Parent] = true
	}
	return slices.DeleteFunc(sessions, func(s Session) bool { return s.Parent == "" && !parents[s.ID] })
}

// alone renumbers the blocks of each session by itself.
func alone(sessions []Session) []Session {
	var out []Session
	for _, s := range sessions {
		out = append(out, renumbered([]Session{s})...)
	}
	return out
}

// Written traces are in the words of those who published them: the first rows come out as they went in. (Among later ones
// are requests of one millisecond, whose order a session does not keep.)
func TestWrittenIsThePublished(t *testing.T) {
	const rows = 100
	text, err := os.ReadFile(mooncakeConversation)
	if err != nil {
		t.Fatal(err)
	}
	sessions := sessionsOf(t, mooncakeConversation, Options{})
	head := func(text string) string { return strings.Join(strings.SplitAfterN(text, "\n", rows+1)[:rows], "") }
	if got, want := head(written(t, sessions, Options{Format: MooncakeCompact})), head(string(text)); got != want {
		t.Errorf("mooncake-compact:\n%s\nwant\n%s", got, want)
	}
	want := head(strings.ReplaceAll(strings.Join(inOrder(t), "\n"), " ", ""))
	if got := head(written(t, sessions, Options{Format: MooncakePlain})); got != want {
		t.Errorf("mooncake:\n%s\nwant\n%s", got, want)
	}
}

// Samples of a group begin with the same made-up text.
func TestWrittenChatShares(t *testing.T) {
	groups, err := ReadAll(generate(t, GenerateOptions{Sessions: 8, System: 3000, GroupSize: 4, Strata: []Stratum{{2, 4, 1}}}))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Format: Chat}
	again := reread(t, written(t, groups, o), o)
	blocks := func(i int) []uint64 { return AppendBlocks(nil, again[i].Turns[0].Blocks) }
	full := again[0].Turns[0].Input/16 - 1 // the last one ends with the message
	if !reflect.DeepEqual(blocks(0)[:full], blocks(3)[:full]) || blocks(0)[3000/16-1] != blocks(4)[3000/16-1] || blocks(0)[3000/16+1] == blocks(4)[3000/16+1] {
		t.Error("the written conversations do not share what the sessions do")
	}
}

func TestQwenRoundTrip(t *testing.T) {
	o := Options{Format: Qwen}
	sessions := reread(t, qwenRows, o)
	got := reread(t, written(t, sessions, o), o)
	// A rest without an id of its own is given one.
	if tail := &got[0].Turns[2].Tail; *tail == 0 {
		t.Error("the rest of a prompt has no id")
	} else {
		*tail = 0
	}
	if got, want := renumbered(got), renumbered(sessions); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestWritersRefuse(t *testing.T) {
	turn := Turn{Input: 100, Output: 50}
	tests := []struct {
		format Format
		s      Session
		want   string
	}{
		{WEKA, Session{ID: "s", BlockTokens: 16, Turns: []Turn{turn}}, "blocks of 16 tokens instead of 64"},
		{WEKA, Session{ID: "s", Parent: "p", BlockTokens: 64, Turns: []Turn{turn}}, `its parent "p" is not among`},
		{MooncakePlain, Session{ID: "s", BlockTokens: 64, Turns: []Turn{turn}}, "blocks of 64 tokens instead of 512"},
		{Groups, Session{ID: "s", BlockTokens: 64, Turns: []Turn{turn}}, "need not go on"},
		{Groups, Session{ID: "s", Replays: true, BlockTokens: 640, Turns: []Turn{turn, {Input: 149}}}, "turn 1: a prompt of 149 tokens does not go on from 100 and 50 generated"},
		{Chat, Session{ID: "s", BlockTokens: 640, Turns: []Turn{{Input: 3}}}, "turn 0: 15 bytes are too few"},
		{Chat, Session{ID: "s", BlockTokens: 640, Turns: []Turn{{Input: 30, Output: 1}}}, "1 generated tokens are too few"},
		{Chat, Session{ID: "s", BlockTokens: 16, Turns: []Turn{{Input: 32, Output: 90, Blocks: []Run{{1, 2}}}, {Input: 320, Blocks: []Run{{5, 20}}}}}, "turn 0 is not the beginning"},
	}
	for _, tt := range tests {
		w, err := NewWriter(io.Discard, Options{Format: tt.format})
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(tt.s); !errors.Is(err, ErrCannotHold) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), `as `+string(tt.format)+`: session "s"`) {
			t.Errorf("%s: error %v, want %q", tt.format, err, tt.want)
		}
	}
	if _, err := NewWriter(io.Discard, Options{Format: NeMoGym}); !errors.Is(err, ErrCannotHold) {
		t.Errorf("nemo-gym: error %v", err)
	}
	if _, err := NewWriter(io.Discard, Options{Format: "x"}); !errors.Is(err, ErrFormat) {
		t.Errorf("no format: error %v", err)
	}
}

// A second session of one name, which no reader would take, is refused in every format, and the trace goes on.
func TestWritersRefuseASecondOfOneName(t *testing.T) {
	session := func(f Format, id, group string) Session {
		size := cmp.Or(f.BlockTokens(), 64)
		return Session{ID: id, Group: group, BlockTokens: size, Replays: true, Turns: []Turn{{Input: 64, Output: 64, Blocks: []Run{{1, 64 / size}}}}}
	}
	for _, f := range Formats() {
		if f == NeMoGym {
			continue
		}
		var out bytes.Buffer
		w, err := NewWriter(&out, Options{Format: f})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range []Session{session(f, "g/a", "g"), session(f, "g/b", "g"), session(f, "c", "")} {
			if err := w.Write(s); err != nil {
				t.Errorf("%s: %v", f, err)
			}
			if err := w.Write(s); !errors.Is(err, ErrCannotHold) || !strings.HasSuffix(err.Error(), "there is another one of this name") {
				t.Errorf("%s: a second %q: %v", f, s.ID, err)
			}
		}
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
		if n := strings.Count(out.String(), "\n"); n != 3 {
			t.Errorf("%s: %d lines for three sessions:\n%s", f, n, out.String())
		}
	}
	for f, s := range map[Format][2]Session{Groups: {session(Groups, "g/a", "g"), session(Groups, "a", "g")}, Chat: {session(Chat, "c", ""), session(Chat, "c/0", "")}} {
		w, err := NewWriter(io.Discard, Options{Format: f})
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(w.Write(s[0]), w.Write(s[1])); !errors.Is(err, ErrCannotHold) {
			t.Errorf("%s: %q and %q are written to one name: %v", f, s[0].ID, s[1].ID, err)
		}
	}
}

// A sub-agent's name counts, too.
func TestWEKARefusesASecondSubAgent(t *testing.T) {
	w, err := NewWriter(io.Discard, Options{Format: WEKA})
	if err != nil {
		t.Fatal(err)
	}
	turns := []Turn{{Input: 1, Output: 1}}
	root := w.Write(Session{ID: "s", BlockTokens: 64, Turns: turns})
	sub := Session{ID: "s/1", Parent: "s", BlockTokens: 64, Turns: turns}
	if err := errors.Join(root, w.Write(sub)); err != nil {
		t.Fatal(err)
	}
	if err := w.Write(sub); !errors.Is(err, ErrCannotHold) {
		t.Errorf("error %v", err)
	}
}

// extends against the ids themselves, over random runs.
func TestExtends(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	runs := func() []Run {
		out := make([]Run, r.IntN(4))
		for i := range out {
			out[i] = Run{First: r.Uint64N(3), Count: r.IntN(4)}
		}
		return out
	}
	yes := 0
	for range 50_000 {
		long, short := runs(), runs()
		a, b := AppendBlocks(nil, long), AppendBlocks(nil, short)
		want := len(a) >= len(b) && slices.Equal(a[:len(b)], b)
		if got := extends(long, short); got != want {
			t.Fatalf("%v begins with %v: %v, want %v", long, short, got, want)
		}
		if want && len(b) > 0 {
			yes++
		}
	}
	if yes < 500 {
		t.Errorf("only %d begin so", yes)
	}
}

// A group is written while its streams begin with one prompt.
func TestGroupsOfOnePrompt(t *testing.T) {
	w, err := NewWriter(io.Discard, Options{Format: Groups})
	if err != nil {
		t.Fatal(err)
	}
	stream := func(id string, input int, first uint64) Session {
		return Session{ID: id, Group: "g", Replays: true, BlockTokens: 16, Turns: []Turn{{Input: input, Output: 1, Blocks: []Run{{first, 2}}}}}
	}
	for _, tt := range []struct {
		s  Session
		ok bool
	}{
		{stream("g/0", 40, 1), true},
		{stream("g/1", 40, 1), true},
		{stream("g/2", 41, 1), false},
		{stream("g/3", 40, 7), false},
	} {
		if err := w.Write(tt.s); (err == nil) != tt.ok || err != nil && !strings.Contains(err.Error(), `not the one of group "g" (40 tokens)`) {
			t.Errorf("%s: %v", tt.s.ID, err)
		}
	}
}

// Copy goes on after what cannot be read or written, as far as it is told to, and stops at what is broken.
func TestCopySkips(t *testing.T) {
	rows := `[0,1,1,[[0,1]],0]
nonsense
[0,1,1,[[1,1]],1]
`
	var seen []error
	copied := func(skip func(error) error) (string, error) {
		r, _, err := Open(strings.NewReader(rows), Options{})
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		w, err := NewWriter(&out, Options{Format: MooncakeCompact})
		if err != nil {
			t.Fatal(err)
		}
		err = Copy(w, r, skip)
		return out.String(), err
	}
	text, err := copied(func(err error) error { seen = append(seen, err); return nil })
	if err != nil || strings.Count(text, "\n") != 2 || len(seen) != 1 || !errors.Is(seen[0], ErrBadLine) {
		t.Errorf("%q, %v, skipped %v", text, err, seen)
	}
	if _, err := copied(nil); !errors.Is(err, ErrBadLine) {
		t.Errorf("without skip: %v", err)
	}
	w, _ := NewWriter(io.Discard, Options{Format: Groups})
	broken := errors.New("disk gone")
	if err := Copy(w, newInterleaved(newLines(brokenReader{broken}), mooncakeCompact{}), func(error) error { return nil }); !errors.Is(err, broken) {
		t.Errorf("error %v, want the reader's own", err)
	}
}
