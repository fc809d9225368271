package main

import "slices"

// Ids that no trace has: texts of the campaign's own, and what requests generate. Both hold a number in bits 20 and up and
// a position below.
const (
	textSpace      = 1 << 61
	generatedSpace = 1 << 62
)

// text is the first n ids of the text with that number, which no other text shares.
func text(number, n int) []uint64 {
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = textSpace | uint64(number)<<20 | uint64(i)
	}
	return ids
}

// generated names n ids of what the campaign's request with that number generates.
func generated(number, n int) []uint64 {
	ids := make([]uint64, n)
	for i := range ids {
		ids[i] = generatedSpace | uint64(number)<<20 | uint64(i)
	}
	return ids
}

// script collects the steps of edges. Each request's Turn is its number, its Session the number of the case.
type script struct {
	steps []step
	n     int
	part  int
}

// ask adds a step: the prompts are sent together and have outputs of as many tokens.
func (s *script) ask(output int, prompts ...[]uint64) {
	var g step
	for _, ids := range prompts {
		g.requests = append(g.requests, request{
			Session: s.part, Turn: s.n, IDs: ids, Prompt: len(ids) * idTokens, Output: output,
			Generated: generated(s.n, output/idTokens),
		})
		s.n++
	}
	s.steps = append(s.steps, g)
}

// edges are the cases at which a model of a prefix cache is easily wrong.
func edges(c settings) []step {
	block := c.BlockTokens / idTokens                  // in ids
	pool := min(c.Blocks, maxTokens/c.BlockTokens) - 4 // in blocks, what one prompt may take
	s := &script{}
	// The same prompt again hits all full blocks but the one with the last token, which has to be computed.
	for _, n := range []int{block / 2, block, block + 1, 2 * block, 3*block - 1, 3 * block} {
		ids := text(100+n, n)
		s.ask(4, ids)
		s.ask(4, ids)
	}
	// Equal prompts at once: the second hits what the first is about to compute in the same step.
	s.part++
	s.ask(8, text(200, 10*block), text(200, 10*block), text(200, 10*block), text(200, 12*block))
	// Longer than a step's budget: the second hits the first's part of this step only.
	s.part++
	s.ask(8, text(201, pool/3*block), text(201, pool/3*block), text(202, pool/6*block), text(202, pool/6*block))
	s.ask(8, text(201, pool/3*block))
	// More than may run at once.
	s.part++
	var many [][]uint64
	for i := range c.MaxSequences + 4 {
		many = append(many, text(300+i/2, (1+i)*block))
	}
	s.ask(12, many...)
	s.ask(12, many...)
	// Contexts that fit until they grow: those admitted last are preempted.
	s.part++
	for round := range 3 {
		var large [][]uint64
		for i := range 4 {
			large = append(large, text(400+i, (c.Blocks-1)/4*block-i-round))
		}
		s.ask(160, large...)
	}
	for round := range 2 {
		var large [][]uint64
		for i := range c.MaxSequences {
			large = append(large, text(420+i, (c.Blocks-1)/c.MaxSequences*block-i-round))
		}
		s.ask(200, large...)
	}
	// The preempted one waits in front of those that have waited since before.
	for range 2 {
		var large [][]uint64
		for i := range 6 {
			large = append(large, text(440+i, ((c.Blocks-1)/4-i/4*c.Blocks/8)*block))
		}
		s.ask(100, large...)
	}
	// One that fits alone keeps shorter ones behind it waiting.
	wait := [][]uint64{text(410, c.Blocks/4*block), text(411, c.Blocks/4*block), text(412, pool*block), text(413, 4*block)}
	s.ask(40, wait...)
	slices.Reverse(wait)
	s.ask(40, wait...)
	// Prompts that go on from what was generated.
	s.part++
	for i := range 4 {
		ids := text(500+i, 6*block+i)
		for range 5 {
			first := s.n
			s.ask(40, ids)
			ids = append(append(append([]uint64{}, ids...), generated(first, 10)...), text(600+s.n, 7)...)
		}
	}
	// An emptied cache knows nothing, and forgets nothing of which blocks are free next.
	s.part++
	s.ask(8, text(100, 20*block), text(500, 6*block))
	s.steps[len(s.steps)-1].reset = true
	s.ask(8, text(100, 20*block), text(500, 6*block))
	for i := range 8 {
		s.ask(16, text(700+i%5, c.Blocks/5*block))
	}
	s.ask(8, text(100, 20*block), text(500, 6*block))
	return s.steps
}
