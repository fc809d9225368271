package vllmrouter

import (
	"math/rand/v2"
	"slices"
	"testing"
)

// Two routers that differ in nothing but how they break ties do not stay within 1 of each other: why the comparison with
// the real router leads it around ties.
func TestTiesAloneAreNotWithinOne(t *testing.T) {
	for seed := range uint64(5) {
		first, most := apart(seed, 2000)
		t.Logf("seed %d: more than 1 apart after %d events, at most %d", seed, first, most)
		if most < 2 {
			t.Errorf("seed %d: never more than %d apart", seed, most)
		}
	}
}

// apart opens and finishes sessions on four replicas in two ways, both on one with the fewest open sessions: one of those
// at random, as a hash would have it, and the least recently chosen. It returns the event after which a count first
// differs by more than 1, and the largest difference.
func apart(seed uint64, events int) (first, most int) {
	random := rand.New(rand.NewPCG(seed, 0))
	const n = 4
	var byHash, byAge, chosen [n]int
	type session struct{ byHash, byAge int }
	var open []session
	least := func(counts *[n]int) (tied []int) {
		low := slices.Min(counts[:])
		for i, c := range counts {
			if c == low {
				tied = append(tied, i)
			}
		}
		return tied
	}
	for event := range events {
		switch {
		case random.IntN(2) == 0: // a turn moves nothing
		case random.IntN(60) >= len(open):
			tied := least(&byHash)
			s := session{byHash: tied[random.IntN(len(tied))]}
			s.byAge = slices.MinFunc(least(&byAge), func(a, b int) int { return chosen[a] - chosen[b] })
			chosen[s.byAge] = event + 1
			byHash[s.byHash]++
			byAge[s.byAge]++
			open = append(open, s)
		default:
			i := random.IntN(len(open))
			byHash[open[i].byHash]--
			byAge[open[i].byAge]--
			open = slices.Delete(open, i, i+1)
		}
		for i := range n {
			if d := max(byHash[i]-byAge[i], byAge[i]-byHash[i]); d > most {
				most = d
				if d > 1 && first == 0 {
					first = event + 1
				}
			}
		}
	}
	return first, most
}
