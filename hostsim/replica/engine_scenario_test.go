package replica

import (
	"reflect"
	"runtime"
	"slices"
	"testing"
	"time"
)

// oneSecond is a step model whose clock counts steps.
type oneSecond struct{ batches []Batch }

func (m *oneSecond) StepTime(b Batch) time.Duration {
	m.batches = append(m.batches, b)
	return time.Second
}

// play steps an engine to its end and returns, for each step, the tags of the requests that ended with it.
func play(e *Engine, now time.Duration) (ended [][]int) {
	for end, busy := e.Start(now); busy; end, busy = e.Start(now) {
		now = end
		var tags []int
		for _, r := range e.End() {
			tags = append(tags, r.Tag)
		}
		ended = append(ended, tags)
	}
	return ended
}

func TestBudgetChunksPrompts(t *testing.T) {
	m := &oneSecond{}
	e := newTestEngine(t, EngineConfig{BlockTokens: 4, Blocks: 20, MaxBatchedTokens: 10, MaxSequences: 8, Step: m})
	submit(t, e, 0, &Request{Prompt: 15, Output: 2, Tag: 1}, &Request{Prompt: 8, Output: 1, Tag: 2})
	if got, want := play(e, 0), [][]int{nil, nil, {1, 2}}; !reflect.DeepEqual(got, want) {
		t.Errorf("ended %v, want %v", got, want)
	}
	want := []Batch{
		{Requests: 1, Prefill: 10, Tokens: 10, Attention: 10 * 5},
		{Requests: 2, Prefill: 10, Tokens: 10, Attention: 5*(10+2.5) + 5*2.5},
		{Requests: 2, Decoding: 1, Prefill: 3, Tokens: 4, Context: 16, Attention: 3 * (5 + 1.5)},
	}
	if !slices.Equal(m.batches, want) {
		t.Errorf("batches %+v, want %+v", m.batches, want)
	}
}

// A request that waits for memory holds up those behind it, and is looked up at every step.
func TestHeadOfLineBlocks(t *testing.T) {
	e := newTestEngine(t, EngineConfig{BlockTokens: 4, Blocks: 10, MaxBatchedTokens: 100, MaxSequences: 8, Step: &oneSecond{}})
	large, blocked, small := &Request{Prompt: 24, Output: 5, Tag: 1}, &Request{Prompt: 20, Output: 1, Tag: 2}, &Request{Prompt: 4, Output: 1, Tag: 3}
	submit(t, e, 0, large, blocked, small)
	if got, want := play(e, 0), [][]int{nil, nil, nil, nil, {1}, {2, 3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("ended %v, want %v", got, want)
	}
	if blocked.Admitted != 5*time.Second || small.Admitted != 5*time.Second || blocked.Queried != 6*20 || small.Queried != 4 {
		t.Errorf("%+v, %+v", blocked, small)
	}
}

func TestOldestTailIsTakenFirst(t *testing.T) {
	e := newTestEngine(t, EngineConfig{BlockTokens: 4, Blocks: 6, MaxBatchedTokens: 100, MaxSequences: 8})
	for _, c := range []struct {
		family, prompt, cached int
	}{
		{1, 12, 0}, // blocks 0 1 2 of the first
		{2, 12, 0}, // and of the second: the pool is full
		{3, 8, 0},  // costs the first its blocks 2 and 1
		{1, 13, 4}, // finds block 0; the rest cost the second its blocks 2, 1, 0
		{2, 12, 0},
	} {
		r := &Request{Prompt: c.prompt, Output: 1, Keys: keys(c.family, 3)}
		submit(t, e, 0, r)
		run(e, 0)
		if r.Cached != c.cached {
			t.Errorf("%+v: found %d", c, r.Cached)
		}
	}
}

// Something has to be computed: of a prompt that is known to its last token, the last block is computed again.
func TestHitIsCapped(t *testing.T) {
	e := newTestEngine(t, EngineConfig{BlockTokens: 4, Blocks: 20, MaxBatchedTokens: 100, MaxSequences: 8})
	for _, c := range []struct{ prompt, cached int }{{12, 0}, {12, 8}, {13, 12}, {9, 8}, {8, 4}, {4, 0}} {
		r := &Request{Prompt: c.prompt, Output: 1, Keys: keys(1, 3)}
		submit(t, e, 0, r)
		run(e, 0)
		if r.Cached != c.cached {
			t.Errorf("%+v: found %d", c, r.Cached)
		}
	}
}

// Blocks are in the cache when they are scheduled: of two equal prompts in one step the second finds the first's.
func TestEqualPromptsInOneStep(t *testing.T) {
	m := &oneSecond{}
	e := newTestEngine(t, EngineConfig{BlockTokens: 4, Blocks: 20, MaxBatchedTokens: 100, MaxSequences: 8, Step: m})
	a, b := &Request{Prompt: 10, Keys: keys(1, 2)}, &Request{Prompt: 10, Keys: keys(1, 2)}
	submit(t, e, 0, a, b)
	run(e, 0)
	if a.Cached != 0 || b.Cached != 8 || len(m.batches) != 1 || m.batches[0].Tokens != 12 {
		t.Errorf("found %d and %d, batches %+v", a.Cached, b.Cached, m.batches)
	}
}

// The request admitted last gives way, goes to the front of the queue and finds what is left of its blocks; the step in
// which it lost them admits nobody.
func TestPreemptionTakesTheLast(t *testing.T) {
	e := newTestEngine(t, EngineConfig{BlockTokens: 2, Blocks: 6, MaxBatchedTokens: 100, MaxSequences: 8, Step: &oneSecond{}})
	var r [5]*Request
	for i := range r {
		r[i] = &Request{Prompt: 4, Output: 4, Tag: i}
	}
	r[4].Prompt, r[4].Output = 2, 1
	submit(t, e, 0, r[1], r[2], r[3], r[4])
	// Step 2: 1 and 2 need a block each and get those of 3. Step 4: 1 needs another and gets one of 2, and ends. Step 5: 2
	// finds 4 of its 7 tokens; 3 needs three blocks, two are free. Step 6: 3 begins anew with 5 tokens, and 4 begins.
	if got, want := play(e, 0), [][]int{nil, nil, nil, {1}, {2}, {4}, nil, {3}}; !reflect.DeepEqual(got, want) {
		t.Errorf("ended %v, want %v", got, want)
	}
	for i, want := range []int{0, 0, 1, 1, 0} {
		if i > 0 && r[i].Preemptions != want {
			t.Errorf("request %d was preempted %d times, want %d", i, r[i].Preemptions, want)
		}
	}
	if s := e.Stats(); s.Preemptions != 2 || s.OutputTokens != 13 || r[3].FirstToken != time.Second || r[3].Admitted != 0 {
		t.Errorf("%+v; %+v", s, r[3])
	}
}

// The next turn finds what the turn before generated, if the caller says what that was.
func TestGeneratedTokensAreFound(t *testing.T) {
	e := newTestEngine(t, EngineConfig{BlockTokens: 4, Blocks: 20, MaxBatchedTokens: 100, MaxSequences: 8})
	// 6 tokens and 6 generated ones, the last of which is never computed: two full blocks.
	submit(t, e, 0, &Request{Prompt: 6, Output: 6, Keys: keys(1, 3)})
	run(e, 0)
	next := &Request{Prompt: 16, Output: 1, Keys: keys(1, 4)}
	submit(t, e, 0, next)
	run(e, 0)
	if next.Cached != 8 {
		t.Errorf("found %d, want 8", next.Cached)
	}
}

func TestAlignedChunks(t *testing.T) {
	m := &oneSecond{}
	e := newTestEngine(t, EngineConfig{BlockTokens: 4, Blocks: 20, MaxBatchedTokens: 10, MaxSequences: 8, AlignedChunks: true, Step: m})
	first, second, third := &Request{Prompt: 11, Tag: 1}, &Request{Prompt: 9, Tag: 2}, &Request{Prompt: 2, Tag: 3}
	submit(t, e, 0, first, second, third)
	// The first takes 8 of 10 tokens; no block is left for the second, and so nothing for the third. Then 3 tokens, 4 of the
	// second and 2 of the third; then 4, which end at 8, and 1.
	if got, want := play(e, 0), [][]int{nil, {1, 3}, nil, {2}}; !reflect.DeepEqual(got, want) {
		t.Errorf("ended %v, want %v", got, want)
	}
	var tokens []int
	for _, b := range m.batches {
		tokens = append(tokens, b.Tokens)
	}
	if want := []int{8, 3 + 4 + 2, 4, 1}; !slices.Equal(tokens, want) {
		t.Errorf("steps of %v tokens, want %v", tokens, want)
	}
	if second.Queried != 18 || third.Queried != 2 {
		t.Errorf("looked up %d and %d", second.Queried, third.Queried)
	}
}

func TestStepsDoNotOverlap(t *testing.T) {
	e := newTestEngine(t, EngineConfig{BlockTokens: 4, Blocks: 20, MaxBatchedTokens: 100, MaxSequences: 8, Step: &oneSecond{}})
	if got := e.End(); got != nil {
		t.Errorf("an idle engine ended %v", got)
	}
	submit(t, e, 0, &Request{Prompt: 3, Tag: 1})
	e.Start(0)
	late := &Request{Prompt: 3, Tag: 2}
	submit(t, e, time.Second/2, late)
	if end, busy := e.Start(time.Second / 2); end != time.Second || !busy {
		t.Errorf("the second Start of a step returns %v, %v", end, busy)
	}
	if got := e.End(); len(got) != 1 || got[0].Tag != 1 {
		t.Errorf("ended %v", got)
	}
	if end, busy := e.Start(time.Second); end != 2*time.Second || !busy || late.Admitted != time.Second {
		t.Errorf("the next step ends at %v, %v: %+v", end, busy, late)
	}
}

func TestCrash(t *testing.T) {
	e := newTestEngine(t, EngineConfig{BlockTokens: 4, Blocks: 20, MaxBatchedTokens: 100, MaxSequences: 2})
	var r []*Request
	for i := range 4 {
		r = append(r, &Request{Prompt: 10, Output: 2, Keys: keys(1, 2), Tag: i})
	}
	submit(t, e, 0, r...)
	e.Start(0)
	if lost := e.Crash(0); !slices.Equal(lost, r) {
		t.Fatalf("lost %v", lost)
	}
	if s := e.Stats(); s.Running+s.Waiting+s.Held+s.Cached != 0 || s.Requests != 4 {
		t.Errorf("%+v", s)
	}
	if _, busy := e.Start(0); busy {
		t.Error("a step survives the crash")
	}
	submit(t, e, 0, r[3])
	run(e, 0)
	if r[3].Cached != 0 {
		t.Error("the cache survives the crash")
	}
}

// A step that a crash ends was busy until then, and one that had ended before is not touched.
func TestCrashEndsBusy(t *testing.T) {
	e := newTestEngine(t, EngineConfig{BlockTokens: 4, Blocks: 20, MaxBatchedTokens: 100, MaxSequences: 2, Step: &oneSecond{}})
	submit(t, e, 0, &Request{Prompt: 10, Output: 3})
	e.Start(0)
	e.End()
	if end, _ := e.Start(time.Second); end != 2*time.Second {
		t.Fatalf("the second step ends at %v", end)
	}
	const want = 1250 * time.Millisecond
	e.Crash(want)
	if got := e.Stats().Busy; got != want {
		t.Errorf("busy for %v, want %v", got, want)
	}
	e.Crash(1500 * time.Millisecond)
	if got := e.Stats().Busy; got != want {
		t.Errorf("busy for %v after a crash without a step, want %v", got, want)
	}
}

// What was found for a request that waits for memory is not there after a crash.
func TestCrashWithBlockedHead(t *testing.T) {
	e := newTestEngine(t, EngineConfig{BlockTokens: 4, Blocks: 6, MaxBatchedTokens: 100, MaxSequences: 4})
	running, blocked := &Request{Prompt: 20, Output: 5, Keys: keys(1, 4)}, &Request{Prompt: 24, Keys: keys(1, 4)}
	submit(t, e, 0, running, blocked)
	submit(t, e, 0, &Request{Prompt: 8})
	e.Start(0)
	e.End()
	e.Start(0)
	if s := e.Stats(); s.Waiting != 2 || s.FoundTokens != 32 {
		t.Fatalf("%+v", s)
	}
	e.Crash(0)
	submit(t, e, 0, blocked)
	run(e, 0)
	if blocked.Cached != 0 || blocked.Finished != 0 || e.Stats().OutputTokens != 2 {
		t.Errorf("%+v, %+v", blocked, e.Stats())
	}
}

// A request that has ended can be submitted again; what was counted for it is gone.
func TestSubmitAgain(t *testing.T) {
	e := newTestEngine(t, EngineConfig{BlockTokens: 2, Blocks: 6, MaxBatchedTokens: 100, MaxSequences: 8})
	r := &Request{Prompt: 4, Output: 4, Keys: keys(1, 2)}
	submit(t, e, 0, &Request{Prompt: 4, Output: 5}, r)
	run(e, 0)
	if r.Preemptions != 1 || r.Queried != 4 {
		t.Fatalf("%+v", r)
	}
	e.ResetCache()
	submit(t, e, 0, r)
	run(e, 0)
	if r.Preemptions != 0 || r.Queried != 4 || r.Found != 0 || r.Cached != 0 {
		t.Errorf("%+v", r)
	}
}

// After a reset nobody finds what was computed before, nor what running requests go on with.
func TestResetCache(t *testing.T) {
	e := newTestEngine(t, EngineConfig{BlockTokens: 4, Blocks: 20, MaxBatchedTokens: 8, MaxSequences: 8})
	running := &Request{Prompt: 12, Output: 6, Keys: keys(1, 4)}
	submit(t, e, 0, running)
	e.Start(0)
	e.End()
	e.ResetCache()
	run(e, 0)
	if s := e.Stats(); s.Cached != 0 || s.Held != 0 || s.OutputTokens != 6 {
		t.Errorf("%+v", s)
	}
	for i, want := range []int{0, 12} {
		r := &Request{Prompt: 13, Keys: keys(1, 4)}
		submit(t, e, 0, r)
		run(e, 0)
		if r.Cached != want {
			t.Errorf("turn %d after the reset found %d tokens, want %d", i, r.Cached, want)
		}
	}
}

// A pool costs what is used of it: here 1,024 engines of 300,000 blocks, 1,000 of them in use.
func TestPoolMemoryGrowsWithUse(t *testing.T) {
	if testing.Short() {
		t.Skip("hundreds of megabytes would be the failure")
	}
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	k := keys(1, 1000)
	var engines []*Engine
	for range 1024 {
		e := newTestEngine(t, EngineConfig{BlockTokens: 64, Blocks: 300_000, MaxBatchedTokens: 1 << 20, MaxSequences: 8})
		submit(t, e, 0, &Request{Prompt: 64_000, Keys: k})
		run(e, 0)
		engines = append(engines, e)
	}
	perBlock := float64(heap()-before) / 1024 / 1000
	runtime.KeepAlive(engines)
	t.Logf("%.1f bytes a block in use", perBlock)
	if perBlock > 50 {
		t.Errorf("%.1f bytes a block in use, want at most 50", perBlock)
	}
}
