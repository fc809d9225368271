package replica

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func TestAppendKeysCount(t *testing.T) {
	for _, c := range []struct {
		ids, idTokens, blockTokens, tokens, want int
	}{
		{3, 64, 64, 200, 3},
		{3, 64, 64, 191, 2},
		{3, 64, 16, 200, 12}, // 200 tokens are 12 blocks, ids name 192
		{3, 64, 16, 1000, 12},
		{3, 64, 16, 40, 2},
		{3, 64, 96, 192, 2},
		{3, 64, 96, 191, 1},
		{3, 64, 4160, 1 << 20, 0},
		{65, 64, 4160, 4160, 1},
		{0, 64, 16, 100, 0},
		{3, 1, 1, 2, 2},
	} {
		ids := make([]uint64, c.ids)
		for i := range ids {
			ids[i] = uint64(i) + 100
		}
		got := AppendKeys([]uint64{7}, ids, c.idTokens, c.blockTokens, c.tokens)
		if len(got) != c.want+1 || got[0] != 7 {
			t.Errorf("%+v: %d keys", c, len(got)-1)
		}
		slices.Sort(got)
		if len(slices.Compact(got)) != c.want+1 {
			t.Errorf("%+v: two blocks of one prompt have one key", c)
		}
	}
}

// Two prompts that share their first ids, and no others, share exactly the keys of the blocks that end within those.
func TestAppendKeysShare(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		idTokens, blockTokens := 1+rng.IntN(70), 1+rng.IntN(200)
		shared, fresh := rng.IntN(30), uint64(1000)
		prompt := func() []uint64 {
			var ids []uint64
			for i := range shared {
				ids = append(ids, uint64(i))
			}
			for range rng.IntN(30) {
				ids = append(ids, fresh)
				fresh++
			}
			return ids
		}
		a, b := prompt(), prompt()
		ka := AppendKeys(nil, a, idTokens, blockTokens, 1<<20)
		kb := AppendKeys(nil, b, idTokens, blockTokens, 1<<20)
		equal := 0
		for equal < min(len(ka), len(kb)) && ka[equal] == kb[equal] {
			equal++
		}
		if want := shared * idTokens / blockTokens; equal != min(want, len(ka), len(kb)) {
			t.Fatalf("%d shared ids of %d tokens, blocks of %d: %d keys are equal, want %d", shared, idTokens, blockTokens, equal, want)
		}
		for _, k := range ka[equal:] {
			if slices.Contains(kb[equal:], k) {
				t.Fatalf("blocks with different content have key %d", k)
			}
		}
	}
}
