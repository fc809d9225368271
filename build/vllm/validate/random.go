package main

import (
	"math/rand/v2"
	"slices"
)

// random are steps of random prompts, which share prefixes, repeat each other and go on from what was generated, in
// numbers and sizes that fill the pool: what nobody thought of for edges. The same seed gives the same steps.
func random(c settings, seed uint64, steps int) []step {
	rng := rand.New(rand.NewPCG(seed, uint64(c.BlockTokens)))
	block := c.BlockTokens / idTokens
	longest := min(c.Blocks-1, maxTokens/c.BlockTokens) * block / 2 // in ids
	s := &script{}
	var past [][]uint64 // prompts, by their requests' numbers
	var outputs []int
	for range steps {
		s.part++
		var prompts [][]uint64
		for range 1 + rng.IntN(c.MaxSequences+3) {
			var ids []uint64
			if len(past) > 0 && rng.IntN(4) > 0 {
				like := max(0, len(past)-1-rng.IntN(30))
				switch ids = past[like]; rng.IntN(3) {
				case 0:
					ids = ids[:1+rng.IntN(len(ids))]
				case 1:
					ids = slices.Concat(ids, generated(like, outputs[like]/idTokens))
				}
			}
			if rng.IntN(3) > 0 || len(ids) == 0 {
				ids = slices.Concat(ids, text(1000+s.n+len(prompts), 1+rng.IntN(longest*2/3)))
			}
			prompts = append(prompts, ids[:min(len(ids), longest)])
		}
		first := s.n
		s.ask(0, prompts...)
		last := &s.steps[len(s.steps)-1]
		last.reset = rng.IntN(30) == 0
		for i := range last.requests {
			n := 1 + rng.IntN(40)
			last.requests[i].Output, last.requests[i].Generated = n*idTokens, generated(first+i, n)
			past, outputs = append(past, prompts[i]), append(outputs, n*idTokens)
		}
	}
	return s.steps
}
