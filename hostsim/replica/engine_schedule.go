package replica

import "time"

// schedule decides what the next step computes, and takes the blocks for it.
func (e *Engine) schedule(now time.Duration) Batch {
	var b Batch
	budget := e.config.MaxBatchedTokens
	preempted := false
	for i := 0; i < len(e.running) && budget > 0; i++ {
		r := e.running[i]
		n := e.chunk(r, r.computed, budget)
		if n == 0 {
			continue
		}
		if r.computed+n > r.room {
			lost, ok := e.makeRoom(r, n)
			preempted = preempted || lost
			if !ok {
				break
			}
		}
		e.take(r, n, &b)
		budget -= n
	}
	// A step that had to preempt admits nothing: what it would admit first is what it has just preempted.
	for !preempted && budget > 0 && len(e.running) < e.config.MaxSequences && e.waiting.len() > 0 {
		r := e.waiting.front()
		found := e.lookUp(r)
		n := e.chunk(r, found, budget)
		if n == 0 || !e.fits(r) {
			e.watch(r) // and nobody overtakes it
			break
		}
		e.waiting.popFront()
		e.running = append(e.running, r)
		e.admit(now, r, found)
		e.allocate(r, n)
		e.take(r, n, &b)
		budget -= n
	}
	return b
}

// makeRoom gets the blocks for r's next n tokens, from the requests that were admitted last if need be. It returns false
// where r itself was the last one left to preempt.
func (e *Engine) makeRoom(r *Request, n int) (preempted, ok bool) {
	need := e.blocksFor(r.computed+n) - len(r.blocks)
	for need > e.pool.free {
		last := e.running[len(e.running)-1]
		e.running = e.running[:len(e.running)-1]
		e.preempt(last)
		preempted = true
		if last == r {
			return true, false
		}
	}
	e.allocate(r, n)
	return preempted, true
}

func (e *Engine) preempt(r *Request) {
	e.release(r)
	r.Preemptions++
	e.stats.Preemptions++
	e.waiting.pushFront(r)
}

// release gives r's blocks back.
func (e *Engine) release(r *Request) {
	e.pool.release(r.blocks)
	e.spare = append(e.spare, r.blocks[:0])
	r.blocks, r.computed, r.hashed, r.room, r.nextFull = nil, 0, 0, 0, 0
}

// allocate takes the blocks that r's next n tokens need. They must be there.
func (e *Engine) allocate(r *Request, n int) {
	for need := e.blocksFor(r.computed+n) - len(r.blocks); need > 0; need-- {
		r.blocks = append(r.blocks, e.pool.take())
	}
	r.room = len(r.blocks) * e.config.BlockTokens
}

// take puts n tokens of r into the step. The blocks that they fill are in the cache from now on: requests admitted later
// in the same step find them.
func (e *Engine) take(r *Request, n int, b *Batch) {
	b.Requests++
	b.Tokens += n
	if r.computed >= r.prefill {
		b.Decoding++
		b.Context += r.total
	} else {
		b.Prefill += n
		b.Attention += float64(n) * (float64(r.computed) + float64(n)/2)
	}
	r.computed += n
	if r.computed >= r.nextFull {
		e.cacheFull(r)
	}
}

// cacheFull puts the blocks of r that have become full into the cache.
func (e *Engine) cacheFull(r *Request) {
	full := r.computed / e.config.BlockTokens
	if !r.stale {
		for i := r.hashed; i < full; i++ {
			key, private := r.key(i)
			e.pool.insert(r.blocks[i], key, private)
		}
	}
	r.hashed = full
	r.nextFull = (full + 1) * e.config.BlockTokens
}

// key names the content of r's block i. Private keys are another space than the caller's.
func (r *Request) key(i int) (key uint64, private bool) {
	if i < len(r.Keys) {
		return r.Keys[i], false
	}
	return r.private + uint64(i), true
}

// chunk returns how many tokens of r, of which start are computed, go into a step that has room for budget.
func (e *Engine) chunk(r *Request, start, budget int) int {
	n := min(r.total-start, budget)
	prefill := max(r.Prompt, r.total-1)
	if !e.config.AlignedChunks || start >= prefill {
		return n
	}
	size := e.config.BlockTokens
	end := start + n
	if end < prefill {
		// A block that no step has room for is computed in parts.
		if aligned := end / size * size; aligned > start || size <= e.config.MaxBatchedTokens {
			end = aligned
		}
	}
	// The state at the last boundary is what the next turn finds, so a chunk ends there too. A chunk that begins inside a
	// block crosses no boundary but that one.
	if last := (r.total - 1) / size * size; start < last {
		end = min(end, last)
	}
	return max(0, end-start)
}

// fits says whether the pool has room for all tokens of r that are known so far; room for its first chunk alone would not
// do (vLLM's scheduler_reserve_full_isl). Cached blocks that nobody holds count as free, but r needs them itself.
func (e *Engine) fits(r *Request) bool {
	return e.blocksFor(r.total)-e.held <= e.pool.free
}

// admit makes r hold the blocks that were found for it.
func (e *Engine) admit(now time.Duration, r *Request, found int) {
	e.unwatch()
	if len(e.spare) > 0 {
		r.blocks, e.spare = e.spare[len(e.spare)-1], e.spare[:len(e.spare)-1]
	}
	e.pool.touch(e.chain)
	r.blocks = append(r.blocks, e.chain...)
	r.computed, r.hashed, r.prefill, r.stale = found, len(e.chain), r.total, false
	r.room, r.nextFull = found, found+e.config.BlockTokens
	if r.Preemptions == 0 {
		r.Admitted, r.Cached = now, found
		e.stats.CachedTokens += int64(found)
	}
}

// blocksFor returns the number of blocks that hold tokens tokens.
func (e *Engine) blocksFor(tokens int) int {
	return (tokens + e.config.BlockTokens - 1) / e.config.BlockTokens
}
