package replica

import (
	"fmt"
	"slices"
	"time"
)

// naiveEngine is the Engine again, slow and obvious: one list of free blocks from the first to the last, contents as text,
// every lookup from the beginning. It knows nothing of keys: a request's tokens are content itself.
type naiveEngine struct {
	config  EngineConfig
	free    []int
	holders []int
	content []string         // of each block; empty: none
	cached  map[string][]int // content -> blocks, the first inserted first
	waiting []*naiveRequest
	running []*naiveRequest
	batch   Batch // of the running step
}

// naiveRequest names its tokens so that equal prefixes are equal text.
type naiveRequest struct {
	id             int
	prompt, output int
	family         []string // the content of each full block, with everything before it
	generated      int
	computed       int
	known          int // tokens known at the last admission
	blocks         []int
	hashed         int
	stale          bool
	cached         int
	queried, found int64
	preemptions    int
}

func newNaiveEngine(c EngineConfig) *naiveEngine {
	n := &naiveEngine{config: c, cached: map[string][]int{}, holders: make([]int, c.Blocks), content: make([]string, c.Blocks)}
	for i := range c.Blocks {
		n.free = append(n.free, i)
	}
	return n
}

func (n *naiveEngine) total(r *naiveRequest) int { return r.prompt + r.generated }

// contentOf is the content of r's block i: what the family says, or r's own.
func (r *naiveRequest) contentOf(i int) string {
	if i < len(r.family) {
		return r.family[i]
	}
	return fmt.Sprintf("only of %d, block %d", r.id, i)
}

func (n *naiveEngine) ceil(tokens int) int {
	return (tokens + n.config.BlockTokens - 1) / n.config.BlockTokens
}

func (n *naiveEngine) pop() int {
	b := n.free[0]
	n.free = n.free[1:]
	n.forget(b)
	n.holders[b] = 1
	return b
}

func (n *naiveEngine) forget(b int) {
	if n.content[b] == "" {
		return
	}
	c := n.content[b]
	n.cached[c] = slices.DeleteFunc(slices.Clone(n.cached[c]), func(x int) bool { return x == b })
	if len(n.cached[c]) == 0 {
		delete(n.cached, c)
	}
	n.content[b] = ""
}

func (n *naiveEngine) giveBack(r *naiveRequest) {
	var front, back []int
	for _, b := range slices.Backward(r.blocks) {
		n.holders[b]--
		if n.holders[b] > 0 {
			continue
		}
		if n.content[b] == "" {
			front = append(front, b)
		} else {
			back = append(back, b)
		}
	}
	n.free = slices.Concat(front, n.free, back)
	r.blocks, r.hashed = nil, 0
}

// schedule returns false when there was nothing to do.
func (n *naiveEngine) schedule() bool {
	n.batch = Batch{}
	budget := n.config.MaxBatchedTokens
	preempted := false
running:
	for i := 0; i < len(n.running) && budget > 0; i++ {
		r := n.running[i]
		want := n.chunk(r, r.computed, budget)
		if want == 0 {
			continue
		}
		for n.ceil(r.computed+want)-len(r.blocks) > len(n.free) {
			victim := n.running[len(n.running)-1]
			n.running = n.running[:len(n.running)-1]
			n.giveBack(victim)
			victim.computed = 0
			victim.preemptions++
			n.waiting = slices.Insert(n.waiting, 0, victim)
			preempted = true
			if victim == r {
				break running
			}
		}
		n.compute(r, want)
		budget -= want
	}
	for !preempted && budget > 0 && len(n.running) < n.config.MaxSequences && len(n.waiting) > 0 {
		r := n.waiting[0]
		hits := n.lookUp(r)
		found := len(hits) * n.config.BlockTokens
		if r.preemptions == 0 {
			r.queried += int64(n.total(r))
			r.found += int64(found)
		}
		want := n.chunk(r, found, budget)
		if want == 0 {
			break
		}
		idle := 0
		for _, b := range hits {
			if n.holders[b] == 0 {
				idle++
			}
		}
		if n.ceil(n.total(r))-len(hits)+idle > len(n.free) {
			break
		}
		if r.preemptions == 0 {
			r.cached = found
		}
		for _, b := range hits {
			if n.holders[b] == 0 {
				n.free = slices.DeleteFunc(slices.Clone(n.free), func(x int) bool { return x == b })
			}
			n.holders[b]++
		}
		r.blocks, r.hashed, r.computed, r.known, r.stale = slices.Clone(hits), len(hits), found, n.total(r), false
		n.waiting = n.waiting[1:]
		n.running = append(n.running, r)
		n.compute(r, want)
		budget -= want
	}
	return n.batch.Tokens > 0
}

// chunk is _mamba_block_aligned_split without speculation and partial hits, in its own order of steps.
func (n *naiveEngine) chunk(r *naiveRequest, start, budget int) int {
	tokens := min(n.total(r)-start, budget)
	prefillEnd := max(r.prompt, n.total(r)-1)
	if !n.config.AlignedChunks || start >= prefillEnd {
		return tokens
	}
	size, end := n.config.BlockTokens, start+tokens
	if end < prefillEnd {
		aligned := end - end%size
		if aligned > start || size <= n.config.MaxBatchedTokens {
			end = aligned
		}
	}
	var stops []int
	if start%size != 0 {
		stops = append(stops, start-start%size+size)
	}
	stops = append(stops, n.total(r)-1-(n.total(r)-1)%size)
	for _, s := range stops {
		if start < s && s < end {
			end = s
		}
	}
	return max(end-start, 0)
}

func (n *naiveEngine) lookUp(r *naiveRequest) (hits []int) {
	for i := 0; (i+1)*n.config.BlockTokens <= n.total(r)-1; i++ {
		found := n.cached[r.contentOf(i)]
		if len(found) == 0 {
			break
		}
		hits = append(hits, found[0])
	}
	return hits
}

func (n *naiveEngine) compute(r *naiveRequest, want int) {
	for n.ceil(r.computed+want) > len(r.blocks) {
		r.blocks = append(r.blocks, n.pop())
	}
	n.batch.Requests++
	n.batch.Tokens += want
	if r.computed >= r.known {
		n.batch.Decoding++
		n.batch.Context += r.computed + 1
	} else {
		n.batch.Prefill += want
		n.batch.Attention += float64(want) * (float64(r.computed) + float64(want)/2)
	}
	r.computed += want
	for ; (r.hashed+1)*n.config.BlockTokens <= r.computed; r.hashed++ {
		if r.stale {
			continue
		}
		b, c := r.blocks[r.hashed], r.contentOf(r.hashed)
		n.content[b] = c
		n.cached[c] = append(slices.Clone(n.cached[c]), b)
	}
}

// end returns the requests that finished.
func (n *naiveEngine) end() (finished []*naiveRequest) {
	var keep []*naiveRequest
	for _, r := range n.running {
		if r.computed == n.total(r) {
			r.generated++
			if r.generated >= max(r.output, 1) {
				n.giveBack(r)
				finished = append(finished, r)
				continue
			}
		}
		keep = append(keep, r)
	}
	n.running = keep
	return finished
}

func (n *naiveEngine) reset() {
	for b := range n.content {
		n.forget(b)
	}
	for _, r := range n.running {
		r.stale = true
	}
}

func (n *naiveEngine) crash() (lost []*naiveRequest) {
	lost = append(slices.Clone(n.running), n.waiting...)
	*n = *newNaiveEngine(n.config)
	return lost
}

// recorder is a step model that keeps what it was asked.
type recorder struct{ batch Batch }

func (r *recorder) StepTime(b Batch) time.Duration {
	r.batch = b
	return time.Duration(1+b.Tokens) * time.Microsecond
}
