package replica

// lookUp returns how many tokens of the request at the head of the queue are in the cache, and leaves their blocks in
// e.chain.
func (e *Engine) lookUp(r *Request) (found int) {
	if e.watched != r || e.pool.watched.changed {
		e.unwatch()
		e.findChain(r)
	}
	found = len(e.chain) * e.config.BlockTokens
	if r.Preemptions == 0 {
		r.Queried += int64(r.total)
		r.Found += int64(found)
		e.stats.QueriedTokens += int64(r.total)
		e.stats.FoundTokens += int64(found)
	}
	return found
}

// findChain finds the longest chain of cached blocks that r begins with, at least one token short of all that is known:
// the model has to compute something to answer.
func (e *Engine) findChain(r *Request) {
	e.chain, e.held = e.chain[:0], 0
	for i := range e.findable(r) {
		b := e.pool.find(r.key(i))
		if b == none {
			break
		}
		if e.pool.held(b) {
			e.held++
		}
		e.chain = append(e.chain, b)
	}
}

// findable returns the number of r's blocks that can be looked for.
func (e *Engine) findable(r *Request) int { return (r.total - 1) / e.config.BlockTokens }

// watch keeps what was found for r, which waits at the head of the queue, until something happens that could change it. A
// head that waits for memory is looked up at every step, a thousand blocks each time.
func (e *Engine) watch(r *Request) {
	if e.watched == r {
		return
	}
	e.watched = r
	e.pool.watch(e.chain)
	if n := len(e.chain); n < e.findable(r) {
		e.pool.watchKey(r.key(n))
	}
}

func (e *Engine) unwatch() {
	if e.watched != nil {
		e.pool.unwatch(e.chain)
		e.watched = nil
	}
}
