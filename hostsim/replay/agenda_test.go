package replay

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// The agenda gives its entries in the order of a stable sort, whatever is moved in between.
func TestAgenda(t *testing.T) {
	for seed := range uint64(50) {
		random := rand.New(rand.NewPCG(seed, 3))
		var a agenda
		var all []entry
		order := func(x, y entry) int { return cmp.Or(cmp.Compare(x.at, y.at), cmp.Compare(x.seq, y.seq)) }
		for range 500 {
			at := time.Duration(random.IntN(100))
			switch k := random.IntN(5); {
			case k < 3 || len(all) == 0:
				a.add(at, turnSent, len(all), 0)
				all = append(all, entry{at: at, seq: a.seq})
			case k == 3:
				a.moveFirst(all[0].at + at)
				all[0].at, all[0].seq = all[0].at+at, a.seq
			default:
				a.dropFirst()
				all = all[1:]
			}
			slices.SortFunc(all, order)
			if len(a.heap) != len(all) || len(all) > 0 && (a.heap[0].at != all[0].at || a.heap[0].seq != all[0].seq) {
				t.Fatalf("seed %d: first of %d is %+v, want %+v of %d", seed, len(a.heap), a.heap[0], all[0], len(all))
			}
		}
	}
}
