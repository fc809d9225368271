package replay

import (
	"math/rand/v2"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// The ideal rate is what a naive reading of tokens says: each block is found that any turn before began with.
func TestIdeal(t *testing.T) {
	for seed := range uint64(20) {
		random := rand.New(rand.NewPCG(seed, 4))
		var sessions []trace.Session
		var texts [][]uint64 // of each turn: a word for each token, in which prefixes differ if words do
		for i := range 6 {
			s := talk(string(rune('a'+i)), uint64(1+random.IntN(3))<<32, 1+random.IntN(5), 16+random.IntN(200))
			s.Replays = random.IntN(2) == 0
			sessions = append(sessions, s)
			for _, u := range s.Turns {
				n := u.Input / 16 * 16
				var text []uint64
				for k := range n {
					text = append(text, s.Turns[0].Blocks[0].First+uint64(k))
				}
				texts = append(texts, text)
			}
		}
		for _, block := range []int{16, 32, 48, 24} {
			got, err := Ideal(&list{sessions: sessions}, block)
			want := naiveIdeal(sessions, texts, block)
			if err != nil || got != want {
				t.Errorf("seed %d, blocks of %d: %v, %v; want %v", seed, block, got, err, want)
			}
		}
	}
}

func naiveIdeal(sessions []trace.Session, texts [][]uint64, block int) float64 {
	known := map[[2]uint64]bool{} // first and last word of a prefix
	hit, all, k := 0, 0, 0
	for _, s := range sessions {
		for i, u := range s.Turns {
			text := texts[k]
			if k++; s.Replays && i+1 < len(s.Turns) && s.Turns[i+1].Input >= u.Input+u.Output {
				text = texts[k][:min(u.Input+u.Output-1, len(texts[k]))]
			}
			found := 0
			for end := block; end <= len(text) && end < u.Input; end += block {
				if !known[[2]uint64{text[0], text[end-1]}] {
					break
				}
				found = end
			}
			for end := block; end <= len(text); end += block {
				known[[2]uint64{text[0], text[end-1]}] = true
			}
			hit, all = hit+found, all+u.Input
		}
	}
	return float64(hit) / float64(all)
}

// One replica with room for everything reaches the ideal when sessions come one by one, to the token: with prompts that end
// where a block does and come again, and with answers that do. What counts a trace says the same.
func TestIdealIsReached(t *testing.T) {
	for _, grow := range []int{100, 96, 20, 39} {
		for _, replays := range []bool{false, true} {
			for _, block := range []int{16, 48, 24, 8} {
				sessions := talks(5, 6, grow)
				sessions[3] = talk("x", 1<<32, 9, grow) // goes on where the first one ended
				for i := range sessions {
					sessions[i].Replays = replays
				}
				c := campaign(sessions, 1)
				c.Engine.BlockTokens, c.Concurrency, c.InOrder = block, 1, true
				ideal, err := Ideal(&list{sessions: sessions}, block)
				if got := play(t, c).HitRate; err != nil || got != ideal || got == 0 {
					t.Errorf("%d more tokens a turn, replays %v, blocks of %d: hit rate %v, ideal %v, %v", grow, replays, block, got, ideal, err)
				}
				counter := trace.Counter{BlockTokens: block}
				if err := counter.AddAll(&list{sessions: sessions}); block%16 == 0 && (err != nil || counter.Stats().IdealHitRate != ideal) {
					t.Errorf("blocks of %d: counted %v, ideal %v, %v", block, counter.Stats().IdealHitRate, ideal, err)
				}
			}
		}
	}
}
