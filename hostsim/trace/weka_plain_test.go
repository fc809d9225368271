package trace

import (
	"reflect"
	"testing"
)

// Two sessions as they were published are, but for the numbers of their blocks' rows, what the delta-encoded files say.
func TestWEKAPlainIsTheDeltas(t *testing.T) {
	want := map[string]Session{}
	for _, path := range []string{"testdata/weka_cc_24.ci.compact.jsonl", "testdata/weka_cc_215.rl-like.compact.jsonl"} {
		for _, s := range sessionsOf(t, path, Options{}) {
			want[s.ID] = s
		}
	}
	plain := sessionsOf(t, "testdata/weka_cc_2.jsonl.gz", Options{})
	if len(plain) != 4 {
		t.Fatalf("%d sessions, want two and two sub-agents", len(plain))
	}
	for _, s := range plain {
		w, known := want[s.ID]
		if !known {
			t.Fatalf("session %q", s.ID)
		}
		if got, want := renumbered([]Session{s}), renumbered([]Session{w}); !reflect.DeepEqual(got, want) {
			t.Errorf("%q:\ngot  %+v\nwant %+v", s.ID, got, want)
		}
	}
}

// renumbered returns the sessions with their blocks numbered in the order in which they come: two traces say the same when
// these are equal, whatever names each has for a block.
func renumbered(sessions []Session) []Session {
	names := map[uint64]uint64{}
	rename := func(id uint64) uint64 {
		if names[id] == 0 {
			names[id] = uint64(len(names)) + 1
		}
		return names[id]
	}
	out := make([]Session, len(sessions))
	for i, s := range sessions {
		s.Turns = append([]Turn(nil), s.Turns...)
		for j := range s.Turns {
			turn := &s.Turns[j]
			var runs []Run
			for _, id := range AppendBlocks(nil, turn.Blocks) {
				runs = appendRun(runs, Run{First: rename(id), Count: 1})
			}
			turn.Blocks = runs
			if turn.Tail != 0 {
				turn.Tail = rename(turn.Tail)
			}
		}
		out[i] = s
	}
	return out
}

func TestWEKAPlainBadLines(t *testing.T) {
	const good = `{"id":"%","block_size":64,"tool_tokens":0,"system_tokens":0,"requests":[{"t":0,"type":"n","in":64,"out":1,"hash_ids":[1]}]}`
	of := func(requests string) string {
		return `{"id":"x","block_size":64,"tool_tokens":0,"system_tokens":0,"requests":[` + requests + `]}`
	}
	checkBadRows(t, Options{}, good, `{"id":"b"`+good[len(`{"id":"%"`):], []badRow{
		{"again", good, "line 1 already"},
		{"another block size", `{"id":"x","block_size":16,"requests":[]}`, "block_size: 16 instead of 64"},
		{"no requests", of(``), "no requests"},
		{"no time", of(`{"in":64,"hash_ids":[1]}`), "requests[0]: field 0: null"},
		{"too few blocks", of(`{"t":0,"in":128,"hash_ids":[1]}`), "1 of them, but 128"},
		{"an id too high", of(`{"t":0,"in":64,"hash_ids":[4294967296]}`), "requests[0]: blocks: "},
		{"a negative id", of(`{"t":0,"in":64,"hash_ids":[-1]}`), "hash_ids"},
		{"fault inside a sub-agent", of(`{"t":0,"in":64,"hash_ids":[1]},{"t":1,"type":"subagent","requests":[{"t":1,"in":64}]}`), "requests[1].requests[0]: blocks: 0 of them"},
	})
}
