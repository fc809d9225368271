package replica

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

// workload is what one seed does to an engine: its size, requests that share prefixes, and when things happen.
type workload struct {
	rng    *rand.Rand
	config EngineConfig
	ids    int
	// interned gives contents their keys.
	interned map[string]uint64
	families [][]string
}

func newWorkload(seed uint64) *workload {
	rng := rand.New(rand.NewPCG(seed, 7))
	w := &workload{rng: rng, interned: map[string]uint64{}}
	w.config = EngineConfig{
		BlockTokens:      1 + rng.IntN(5),
		Blocks:           6 + rng.IntN(40),
		MaxBatchedTokens: 1 + rng.IntN(30),
		MaxSequences:     1 + rng.IntN(6),
		AlignedChunks:    rng.IntN(3) == 0,
	}
	// Families of prompts: each is another's beginning and something of its own.
	for f := range 5 {
		var blocks []string
		if f > 0 {
			from := w.families[rng.IntN(f)]
			blocks = append(blocks, from[:rng.IntN(len(from))]...)
		}
		for len(blocks) < w.config.Blocks {
			last := ""
			if len(blocks) > 0 {
				last = blocks[len(blocks)-1]
			}
			blocks = append(blocks, fmt.Sprintf("%s/%d", last, f))
		}
		w.families = append(w.families, blocks)
	}
	return w
}

func (w *workload) key(content string) uint64 {
	k, ok := w.interned[content]
	if !ok {
		k = uint64(len(w.interned))
		w.interned[content] = k
	}
	return k
}

// request makes a request for both engines.
func (w *workload) request() (*Request, *naiveRequest) {
	size := w.config.BlockTokens
	tokens := 1 + w.rng.IntN(w.config.Blocks*size)
	if w.rng.IntN(4) > 0 {
		tokens = 1 + tokens/3
	}
	output := w.rng.IntN(tokens)
	prompt := tokens - output
	known := w.families[w.rng.IntN(len(w.families))][:w.rng.IntN(tokens/size+1)]
	w.ids++
	n := &naiveRequest{id: w.ids, prompt: prompt, output: output, family: known}
	r := &Request{Prompt: prompt, Output: output, Tag: w.ids}
	for _, c := range known {
		r.Keys = append(r.Keys, w.key(c))
	}
	return r, n
}

// checkPool counts every block of a pool and asks for every content.
func checkPool(t *testing.T, e *Engine) {
	t.Helper()
	p := &e.pool
	holders := make([]uint32, len(p.blocks))
	for _, r := range e.running {
		for _, b := range r.blocks {
			holders[b]++
		}
	}
	seen := make([]bool, len(p.blocks))
	free := p.size - len(p.blocks)
	see := func(i int32) {
		if seen[i] || holders[i] > 0 {
			t.Fatalf("block %d is free twice, or free and held by %d", i, holders[i])
		}
		seen[i] = true
		free++
	}
	for i := p.empty; i != none; i = p.blocks[i].next {
		see(i)
		if p.blocks[i].state&hasContent != 0 {
			t.Fatalf("block %d has content and is taken first", i)
		}
	}
	before := none
	for i := p.oldest; i != none; i = p.blocks[i].next {
		see(i)
		if p.blocks[i].prev != before {
			t.Fatalf("block %d comes after %d and says %d", i, before, p.blocks[i].prev)
		}
		before = i
	}
	if before != p.newest {
		t.Fatalf("the newest free block is %d, the list ends with %d", p.newest, before)
	}
	held, cached := 0, 0
	for i := range p.blocks {
		b := &p.blocks[i]
		if b.state/oneHolder != holders[i] || holders[i] == 0 && !seen[i] {
			t.Fatalf("block %d has %d holders by its own count, %d by ours; free: %v", i, b.state/oneHolder, holders[i], seen[i])
		}
		if holders[i] > 0 {
			held++
		}
		if b.state&hasContent != 0 {
			cached++
			if f := p.find(b.key, b.state&isPrivate != 0); f == none || p.blocks[f].key != b.key {
				t.Fatalf("block %d is not found by its key", i)
			}
		}
	}
	if s := e.Stats(); free != p.free || held+free != p.size || s.Held != held || s.Cached != cached {
		t.Fatalf("%d free, %d held, %d cached of %d blocks; the engine says %+v", free, held, cached, p.size, s)
	}
}

// both runs an engine and the naive one through a seed's events and compares them at every step.
func both(t *testing.T, seed uint64) (log []string, stats EngineStats) {
	w := newWorkload(seed)
	rec := &recorder{}
	w.config.Step = rec
	e, n := newTestEngine(t, w.config), newNaiveEngine(w.config)
	pairs := map[int]*naiveRequest{}
	var now time.Duration
	ends, submitted, lost := 0, 0, 0
	var generated, prompts int64
	events := 150
	compare := func(r *Request) {
		o := pairs[r.Tag]
		if o == nil || r.Cached != o.cached || r.Queried != o.queried || r.Found != o.found || r.Preemptions != o.preemptions {
			t.Fatalf("seed %d: request %+v; want %+v", seed, r, o)
		}
		delete(pairs, r.Tag)
		log = append(log, fmt.Sprint(now, r.Tag, r.Cached, r.FirstToken, r.Finished, r.Preemptions))
	}
	for i := 0; i < events || len(pairs) > 0; i++ {
		if i > 100*events {
			t.Fatalf("seed %d: %d requests never end", seed, len(pairs))
		}
		for i < events && w.rng.IntN(3) == 0 {
			r, o := w.request()
			submit(t, e, now, r)
			pairs[r.Tag] = o
			n.waiting = append(n.waiting, o)
			submitted++
			prompts += int64(r.Prompt)
		}
		end, busy := e.Start(now)
		if want := n.schedule(); busy != want || busy && rec.batch != n.batch {
			t.Fatalf("seed %d, event %d: step %v %+v; want %v %+v", seed, i, busy, rec.batch, want, n.batch)
		}
		checkPool(t, e)
		if b := rec.batch; busy && (b.Tokens > w.config.MaxBatchedTokens || len(e.running) > w.config.MaxSequences || b.Tokens != b.Prefill+b.Decoding) {
			t.Fatalf("seed %d, event %d: %+v over %+v", seed, i, b, w.config)
		}
		if w.rng.IntN(120) == 0 {
			naive := n.crash()
			for k, r := range e.Crash(now) {
				if naive[k].id != r.Tag {
					t.Fatalf("seed %d, event %d: crash returns %d, want %d", seed, i, r.Tag, naive[k].id)
				}
				delete(pairs, r.Tag)
				lost++
			}
			if len(pairs) != 0 {
				t.Fatalf("seed %d: a crash left out %d requests", seed, len(pairs))
			}
			checkPool(t, e)
			continue
		}
		if w.rng.IntN(40) == 0 {
			e.ResetCache()
			n.reset()
			checkPool(t, e)
		}
		if !busy {
			continue
		}
		now = end
		var ids []int
		for _, o := range n.end() {
			ids = append(ids, o.id)
			generated += int64(o.generated)
			ends++
		}
		var got []int
		for _, r := range e.End() {
			got = append(got, r.Tag)
			if r.Finished != now || r.Admitted < r.Submitted || r.FirstToken <= r.Admitted || r.FirstToken > r.Finished {
				t.Fatalf("seed %d: times %+v at %v", seed, r, now)
			}
			compare(r)
		}
		if !slices.Equal(got, ids) {
			t.Fatalf("seed %d, event %d: %v ended, want %v", seed, i, got, ids)
		}
		checkPool(t, e)
	}
	s := e.Stats()
	if ends+lost != submitted || s.Requests != int64(submitted) || s.PromptTokens != prompts || s.OutputTokens < generated || s.Running+s.Waiting+s.Held != 0 {
		t.Fatalf("seed %d: %d ended, %d lost of %d: %+v", seed, ends, lost, submitted, s)
	}
	if lost == 0 && s.OutputTokens != generated {
		t.Fatalf("seed %d: %d tokens generated, %d counted", seed, generated, s.OutputTokens)
	}
	return log, s
}

// TestEngineAgainstNaive holds the engine to the naive one: every step's batch, every request's cached tokens, the order in
// which requests end, through preemptions, crashes and resets; and the pool's invariants after each event.
func TestEngineAgainstNaive(t *testing.T) {
	var sum EngineStats
	for seed := range uint64(400) {
		_, s := both(t, seed)
		sum.Preemptions += s.Preemptions
		sum.CachedTokens += s.CachedTokens
		sum.PromptTokens += s.PromptTokens
		sum.QueriedTokens += s.QueriedTokens
	}
	// A workload without these would prove nothing.
	if sum.Preemptions < 1000 || sum.CachedTokens*10 < sum.PromptTokens || sum.QueriedTokens*3 < 4*sum.PromptTokens {
		t.Fatalf("too tame: %+v", sum)
	}
}

func TestEngineIsDeterministic(t *testing.T) {
	for seed := range uint64(20) {
		log, stats := both(t, seed)
		again, statsAgain := both(t, seed)
		if !slices.Equal(log, again) || stats != statsAgain {
			t.Fatalf("seed %d ran two ways", seed)
		}
	}
}
