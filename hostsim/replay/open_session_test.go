package replay

import (
	"slices"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// An engine's block that is several of the trace's has the key of the last of them, which tells all of it: prompts that
// differ anywhere inside have different keys.
func TestKeysOfLargerBlocks(t *testing.T) {
	of := func(blocks ...trace.Run) []uint64 {
		s := trace.Session{BlockTokens: 16, Turns: []trace.Turn{{Input: 16*trace.BlockCount(blocks) + 5, Blocks: blocks}}}
		ks, _ := keys(nil, nil, &s, 0, 64)
		return ks
	}
	whole := of(trace.Run{First: 100, Count: 9})
	if len(whole) != 2 || whole[0] == whole[1] {
		t.Fatalf("keys %v", whole)
	}
	for _, c := range []struct {
		name   string
		blocks []trace.Run
		same   int
	}{
		{"the same in two runs", []trace.Run{{First: 100, Count: 3}, {First: 103, Count: 6}}, 2},
		{"another last quarter of the second", []trace.Run{{First: 100, Count: 7}, {First: 900, Count: 1}}, 1},
		{"another last quarter of the first", []trace.Run{{First: 100, Count: 3}, {First: 900, Count: 5}}, 0},
		{"all else", []trace.Run{{First: 900, Count: 8}}, 0},
	} {
		got, same := of(c.blocks...), 0
		for same < 2 && got[same] == whole[same] {
			same++
		}
		if same != c.same {
			t.Errorf("%s: %d blocks are the same, want %d", c.name, same, c.same)
		}
	}
}

// What a turn generates has the keys of the next prompt, if that goes on from it.
func TestKeysOfWhatIsGenerated(t *testing.T) {
	for _, c := range []struct {
		name    string
		replays bool
		next    int
		ids     []uint64
	}{
		{"the next prompt goes on from it", true, 112, []uint64{1, 2, 3, 4, 5, 6}},
		{"the next prompt ends with it", true, 96, []uint64{1, 2, 3, 4, 5, 6}},
		{"the next prompt leaves some of it out", true, 95, []uint64{1, 2, 3, 4}},
		{"the trace does not tell", false, 112, []uint64{1, 2, 3, 4}},
	} {
		s := trace.Session{BlockTokens: 16, Replays: c.replays, Turns: []trace.Turn{
			{Input: 64, Output: 32, Blocks: []trace.Run{{First: 1, Count: 4}}},
			{Input: c.next, Output: 1, Blocks: []trace.Run{{First: 1, Count: c.next / 16}}},
		}}
		if got, _ := keys(nil, nil, &s, 0, 16); !slices.Equal(got, replica.AppendKeys(nil, c.ids, 16, 16, 16*len(c.ids))) {
			t.Errorf("%s: keys %v, want those of %v", c.name, got, c.ids)
		}
	}
}
