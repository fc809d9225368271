package trace

import (
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

const mooncakeConversation = "testdata/mooncake_conversation.compact.jsonl"

// sessionsOf reads a trace of testdata to its end.
func sessionsOf(t *testing.T, path string, o Options) []Session {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, _, err := Open(f, o)
	if err != nil {
		t.Fatal(err)
	}
	sessions, err := ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		checkSession(t, s)
	}
	return sessions
}

// checkSession holds a session to the invariants of Session that it can show alone.
func checkSession(t *testing.T, s Session) {
	t.Helper()
	if s.ID == "" || len(s.Turns) == 0 || s.BlockTokens < 1 || s.Start < 0 {
		t.Fatalf("session %+v", s)
	}
	var at time.Duration
	for i, turn := range s.Turns {
		if turn.Input < 1 || turn.Output < 0 || turn.Think < 0 || turn.API < 0 || turn.At < at {
			t.Fatalf("turn %d of %q: %+v", i, s.ID, turn)
		}
		at = turn.At
		if got := BlockCount(turn.Blocks); got != turn.Input/s.BlockTokens {
			t.Fatalf("turn %d of %q: %d blocks of %d for %d tokens", i, s.ID, got, s.BlockTokens, turn.Input)
		}
	}
}

// The rows as a request a line, with the ids that make up the runs.
func TestMooncakePlainIsCompactWithoutSessions(t *testing.T) {
	rows := `{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 1500, "input_length": 512, "output_length": 6, "hash_ids": [3]}
{"timestamp": 2000, "input_length": 1536, "output_length": 7, "hash_ids": [0, 1, 9]}
{"timestamp": 2000, "input_length": 700, "output_length": 8, "hash_ids": [0, 10]}
`
	sessions, err := ReadAll(newInterleaved(newLines(strings.NewReader(rows)), &mooncakePlain{}))
	if err != nil {
		t.Fatal(err)
	}
	want := []Session{
		{ID: "0", BlockTokens: 512, Turns: []Turn{
			{Input: 1100, Output: 5, Blocks: []Run{{1, 2}}, Tail: 3},
			{At: 2 * time.Second, Input: 1536, Output: 7, Blocks: []Run{{1, 2}, {10, 1}}}}},
		{ID: "1", BlockTokens: 512, Start: 1500 * time.Millisecond, Turns: []Turn{{Input: 512, Output: 6, Blocks: []Run{{4, 1}}}}},
		{ID: "2", BlockTokens: 512, Start: 2 * time.Second, Turns: []Turn{{Input: 700, Output: 8, Blocks: []Run{{1, 1}}, Tail: 11}}},
	}
	if !reflect.DeepEqual(sessions, want) {
		t.Errorf("got  %+v\nwant %+v", sessions, want)
	}
	compact := `[0,1100,5,[[0,3]],0]
[1500,512,6,[[3,1]],1]
[2000,1536,7,[[0,2],[9,1]],0]
[2000,700,8,[[0,1],[10,1]],2]`
	if got, err := ReadAll(newInterleaved(newLines(strings.NewReader(compact)), mooncakeCompact{})); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("compact: %+v, %v\nwant %+v", got, err, want)
	}
}

// Without their names the sessions of the published conversations are found again: of those that follow each other in the
// compact form at least 98 of 100, and no more than 1 of 100 that do not.
func TestMooncakeSessionsAreFound(t *testing.T) {
	named := sessionsOf(t, mooncakeConversation, Options{})
	follows := map[string]bool{}
	key := func(s Session, a, b Turn) string {
		return fmt.Sprint(s.Start+a.At, a.Input, a.Output, a.Tail, s.Start+b.At, b.Input, b.Output, b.Tail)
	}
	for _, s := range named {
		for i := 1; i < len(s.Turns); i++ {
			follows[key(s, s.Turns[i-1], s.Turns[i])] = true
		}
	}
	rows := inOrder(t)
	d := &interleaved{decoder: &mooncakePlain{}, index: map[string]int{}}
	for _, text := range rows {
		if err := d.add([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	found, extra := 0, 0
	for _, s := range d.sessions {
		for i := 1; i < len(s.Turns); i++ {
			if follows[key(s, s.Turns[i-1], s.Turns[i])] {
				found++
			} else {
				extra++
			}
		}
	}
	if len(follows) < 3900 || found*100 < 98*len(follows) || extra*100 > len(follows) {
		t.Errorf("found %d of %d that follow each other, and %d that do not", found, len(follows), extra)
	}
}

// inOrder returns the published rows, made from the compact ones.
func inOrder(t *testing.T) []string {
	t.Helper()
	text, err := os.ReadFile(mooncakeConversation)
	if err != nil {
		t.Fatal(err)
	}
	var rows []string
	for line := range strings.Lines(string(text)) {
		q, err := (mooncakeCompact{}).decode([]byte(line))
		if err != nil {
			t.Fatal(err)
		}
		ids := AppendBlocks(nil, q.turn.Blocks)
		if q.turn.Tail != 0 {
			ids = append(ids, q.turn.Tail)
		}
		for i := range ids {
			ids[i]--
		}
		rows = append(rows, fmt.Sprintf(`{"timestamp": %d, "input_length": %d, "output_length": %d, "hash_ids": %s}`,
			q.at.Milliseconds(), q.turn.Input, q.turn.Output, strings.ReplaceAll(fmt.Sprint(ids), " ", ",")))
	}
	return rows
}

// badRow is a line that a reader refuses, and what it says of it.
type badRow struct{ name, row, reason string }

// checkBadRows reads a good line, each bad one, and another good line.
func checkBadRows(t *testing.T, o Options, first, last string, tests []badRow) {
	t.Helper()
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r, _, err := Open(strings.NewReader(first+"\n"+tt.row+"\n"+last+"\n"), o)
			if err != nil {
				t.Fatal(err)
			}
			sessions, bad := 0, 0
			for {
				_, err := r.Next()
				if errors.Is(err, io.EOF) {
					break
				}
				var line *LineError
				switch {
				case err == nil:
					sessions++
				case !errors.As(err, &line):
					t.Fatal(err)
				default:
					bad++
					if line.Line != 2 || !strings.Contains(line.Reason, tt.reason) {
						t.Errorf("%v, want line 2 and %q", line, tt.reason)
					}
				}
			}
			if sessions != 2 || bad != 1 {
				t.Errorf("%d sessions and %d bad lines, want 2 and 1", sessions, bad)
			}
		})
	}
}

func TestMooncakeBadLines(t *testing.T) {
	checkBadRows(t, Options{Format: MooncakeCompact}, `[5,512,5,[[0,1]],0]`, `[6,512,5,[[0,1]],1]`, []badRow{
		{"not JSON", `[0,`, "unexpected EOF"},
		{"four fields", `[0,512,5,[[0,1]]]`, "4 fields"},
		{"null", `[0,512,null,[[0,1]],0]`, "field 2: null"},
		{"no input", `[0,0,5,[],0]`, "0 input"},
		{"too few", `[0,1025,5,[[0,1]],0]`, "1 blocks, but 1025 input tokens begin 3 of 512"},
		{"too many", `[0,512,5,[[0,2]],0]`, "2 blocks"},
		{"no pair", `[0,512,5,[[0]],0]`, "not [first, count]"},
		{"negative id", `[0,512,5,[[-1,1]],0]`, "field 3"},
		{"huge count", `[0,512,5,[[0,18446744073709551615]],0]`, "not [first, count]"},
		{"back in time", `[4,512,5,[[0,1]],0]`, "before the request above it"},
		{"before the beginning", `[-4,512,5,[[0,1]],0]`, "is not a time"},
	})
	checkBadRows(t, Options{Format: MooncakePlain}, `{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[1]}`,
		`{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[2]}`, []badRow{
			{"no time", `{"input_length":1,"output_length":1,"hash_ids":[3]}`, "timestamp: missing"},
			{"no ids", `{"timestamp":0,"input_length":512,"output_length":1}`, "0 blocks"},
			{"an id too high", `{"timestamp":0,"input_length":1,"output_length":1,"hash_ids":[9007199254740993]}`, "is above"},
			{"unknown key", `{"timestamp":0,"input_length":1,"output_length":1,"hash_id":[3]}`, `"hash_id"`},
		})
}
