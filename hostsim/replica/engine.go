package replica

import (
	"errors"
	"fmt"
	"math"
	"time"
)

// ErrRequest is wrapped by Submit's error about a request whose lengths are out of range or that is already in an engine.
var ErrRequest = errors.New("replica: bad request")

// ErrTooLong is wrapped by Submit's error about a request that the engine's whole pool could not hold.
var ErrTooLong = errors.New("replica: request is longer than the pool")

// maxTokens bounds a block, a prompt and an answer, so that sums of them are far from overflow.
const maxTokens = math.MaxInt32

// EngineConfig describes one model server's scheduler and memory. See Preset for whole sets of numbers.
type EngineConfig struct {
	// BlockTokens is the size of a cache block in tokens, 1 to 2^31-1. Hybrid models cache at a large aligned block.
	BlockTokens int
	// Blocks is the number of blocks that requests can use, 1 to 2^31-1: vLLM's num_gpu_blocks less its null block.
	Blocks int
	// MaxBatchedTokens is the token budget of one step, 1 or more.
	MaxBatchedTokens int
	// MaxSequences bounds the requests that run at once, 1 or more.
	MaxSequences int
	// AlignedChunks says that a prefill chunk ends where a block does, or where the prompt does: hybrid models keep their
	// recurrent state at the end of a chunk (vLLM's mamba_cache_mode align). A request for whose next chunk the step's
	// budget has no block left gets nothing in that step, and if it waits, nobody behind it is admitted. All full blocks can be
	// found, though those servers keep no state but at the ends of chunks.
	AlignedChunks bool
	// Step tells how long a step takes. Nil is a step that takes no time.
	Step StepModel
}

// Validate reports the first field that is out of range, as an error that wraps ErrConfig.
func (c *EngineConfig) Validate() error {
	for _, f := range []struct {
		name  string
		value int
	}{
		{"BlockTokens", c.BlockTokens}, {"Blocks", c.Blocks}, {"MaxBatchedTokens", c.MaxBatchedTokens}, {"MaxSequences", c.MaxSequences},
	} {
		if f.value < 1 {
			return fmt.Errorf("%w: %s is %d; it must be 1 or more", ErrConfig, f.name, f.value)
		}
	}
	if c.Blocks > maxBlocks {
		return fmt.Errorf("%w: Blocks is %d; it must be at most %d", ErrConfig, c.Blocks, maxBlocks)
	}
	if c.BlockTokens > maxTokens {
		return fmt.Errorf("%w: BlockTokens is %d; it must be at most %d", ErrConfig, c.BlockTokens, maxTokens)
	}
	return nil
}

// Batch is what one step computes.
type Batch struct {
	// Requests is the number of requests with tokens in the step; Decoding of them have one token each.
	Requests, Decoding int
	// Prefill is the number of prompt tokens; Tokens is all of them.
	Prefill, Tokens int
	// Context is the sum of the decoding requests' contexts in tokens; Attention is the sum over prefill chunks of
	// n*(context before it + n/2).
	Context   int
	Attention float64
}

// StepModel tells how long a step takes. Zero or less is a step that takes no time.
type StepModel interface {
	StepTime(Batch) time.Duration
}

// Request is one turn on an engine. The engine fills the fields below Tag; nobody changes a request while an engine has
// it. A request that has ended can be submitted again.
type Request struct {
	// Prompt and Output are lengths in tokens, up to 2^31-1; Prompt 1 or more, Output zero or more (zero ends with the
	// prefill, as one token).
	Prompt, Output int
	// Keys names the content of the request's first full blocks (of the engine's BlockTokens): equal keys are equal
	// content and equal content before it. They may go on beyond the prompt, as far as what will be generated is known;
	// blocks beyond them are nobody else's prefix. See AppendKeys.
	Keys []uint64
	// Tag is the caller's.
	Tag int

	// Submitted, Admitted (first), FirstToken and Finished are times on the caller's clock.
	Submitted, Admitted, FirstToken, Finished time.Duration
	// Cached is the number of prompt tokens found in the cache at the first admission.
	Cached int
	// Queried is the number of prompt tokens that were looked up, once for each attempt to admit the request before it
	// succeeded; Found is how many of those were found.
	Queried, Found int64
	// Preemptions counts how often the request lost its blocks.
	Preemptions int

	work
}

// work is what the scheduler knows of a request that it has.
type work struct {
	engine *Engine
	// total is the number of tokens known so far: prompt and generated ones. computed of them are in the blocks or will be
	// at the end of the step.
	total, computed int
	// prefill is total at the last admission: up to there the request computes what is known already.
	prefill int
	// blocks are those that the request holds, in the order of its tokens. The first hashed of them are in the cache, or
	// would be if the cache had not been reset.
	blocks []int32
	hashed int
	// room is what the blocks hold, in tokens; nextFull is where the next block is full.
	room, nextFull int
	// private is the first of the request's private keys: that of its block 0.
	private uint64
	// stale says that the cache was reset since the request was admitted: its blocks are nobody's prefix.
	stale bool
}

// generated returns the number of tokens generated so far.
func (r *Request) generated() int { return r.total - r.Prompt }

// Engine is one model server: a wait queue, running requests, a block pool with a prefix cache. It follows vLLM's V1
// scheduler (release 0.32: vllm/v1/core/sched/scheduler.py, block_pool.py, kv_cache_manager.py) with first come, first
// served, chunked prefill and one KV cache group, without speculation and without async scheduling.
//
// A step is one event:
//
//	for end, busy := e.Start(now); busy; end, busy = e.Start(now) {
//		now = end
//		for _, r := range e.End() { ... finished ... }
//	}
//
// Not safe for concurrent use.
type Engine struct {
	config  EngineConfig
	pool    blockPool
	waiting requestQueue
	running []*Request
	// finished is what the last End returned.
	finished []*Request
	// chain is the chain of blocks that the last lookup found; requests hold held of them.
	chain []int32
	held  int
	// watched is the request for which chain was found, as long as that is kept.
	watched *Request
	// spare are block lists of requests that have ended.
	spare [][]int32
	// nextPrivate is the first private key that nobody has.
	nextPrivate uint64

	stepping bool
	stepEnd  time.Duration
	stats    EngineStats
}

// NewEngine returns an idle engine with an empty cache. Memory grows with the blocks that are used. Errors: ErrConfig.
func NewEngine(c EngineConfig) (*Engine, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	return &Engine{config: c, pool: newBlockPool(c.Blocks)}, nil
}

// Submit puts a request at the end of the wait queue. Allowed at any time; a step that runs does not see it. A request
// that the empty pool could not hold is refused with ErrTooLong, one that makes no sense with ErrRequest.
func (e *Engine) Submit(now time.Duration, r *Request) error {
	if r.Prompt < 1 || r.Output < 0 || r.Prompt > maxTokens || r.Output > maxTokens {
		return fmt.Errorf("%w: %d prompt tokens and %d to generate; 1 or more and 0 or more are allowed, at most %d",
			ErrRequest, r.Prompt, r.Output, maxTokens)
	}
	if r.engine != nil {
		return fmt.Errorf("%w: it is in an engine already", ErrRequest)
	}
	// The last token is never computed.
	blocks := e.blocksFor(r.Prompt + max(r.Output, 1) - 1)
	if blocks > e.config.Blocks {
		return fmt.Errorf("%w: %d prompt tokens and %d to generate need %d blocks of %d tokens, the pool has %d",
			ErrTooLong, r.Prompt, r.Output, blocks, e.config.BlockTokens, e.config.Blocks)
	}
	r.Submitted, r.Admitted, r.FirstToken, r.Finished = now, 0, 0, 0
	r.Cached, r.Queried, r.Found, r.Preemptions = 0, 0, 0, 0
	r.work = work{engine: e, total: r.Prompt, private: e.nextPrivate}
	e.nextPrivate += uint64(blocks)
	e.stats.Requests++
	e.stats.PromptTokens += int64(r.Prompt)
	e.waiting.pushBack(r)
	return nil
}

// Start begins a step at now and returns when it ends, or false when there is nothing to do. During a step it changes
// nothing and returns that step's end.
func (e *Engine) Start(now time.Duration) (end time.Duration, busy bool) {
	if e.stepping {
		return e.stepEnd, true
	}
	b := e.schedule(now)
	if b.Tokens == 0 {
		return 0, false
	}
	var d time.Duration
	if e.config.Step != nil {
		d = max(0, e.config.Step.StepTime(b))
	}
	e.stepping, e.stepEnd = true, now+d
	e.stats.Steps++
	e.stats.Busy += d
	return e.stepEnd, true
}

// End ends the running step and returns the requests that are finished by it, valid until the next call. Without a step
// it does nothing.
func (e *Engine) End() []*Request {
	e.finished = e.finished[:0]
	if !e.stepping {
		return nil
	}
	e.stepping = false
	keep := e.running[:0]
	for _, r := range e.running {
		if r.computed < r.total {
			keep = append(keep, r)
			continue
		}
		if r.total == r.Prompt {
			r.FirstToken = e.stepEnd
		}
		r.total++
		e.stats.OutputTokens++
		if r.generated() < r.Output {
			keep = append(keep, r)
			continue
		}
		r.Finished = e.stepEnd
		e.release(r)
		r.engine = nil
		e.finished = append(e.finished, r)
	}
	clear(e.running[len(keep):])
	e.running = keep
	return e.finished
}

// Crash takes everything: it returns the requests that waited or ran, in the order of their queues, running ones first,
// and empties the cache. A step that ran is over, and was busy until now only.
func (e *Engine) Crash(now time.Duration) []*Request {
	if e.stepping {
		e.stats.Busy -= max(0, e.stepEnd-now)
	}
	lost := append([]*Request{}, e.running...)
	for e.waiting.len() > 0 {
		lost = append(lost, e.waiting.popFront())
	}
	for _, r := range lost {
		r.work = work{}
	}
	clear(e.running)
	e.running, e.stepping = e.running[:0], false
	e.pool = newBlockPool(e.config.Blocks)
	e.watched = nil
	return lost
}

// ResetCache forgets all cached content, as weights that change make it worthless; running requests go on, and what they
// hold and will fill is nobody's prefix. O(blocks in use).
func (e *Engine) ResetCache() {
	e.pool.reset()
	for _, r := range e.running {
		r.stale = true
	}
}

// EngineStats counts since NewEngine. Tokens are prompt tokens.
type EngineStats struct {
	// QueriedTokens and FoundTokens count every attempt to admit a request before it succeeded, as vLLM's metrics did for
	// long; CachedTokens counts the first admission.
	Requests, PromptTokens, CachedTokens, QueriedTokens, FoundTokens, OutputTokens int64
	Steps, Preemptions                                                             int64
	// Busy is the time of steps, of one that runs all of it.
	Busy time.Duration
	// Now: requests waiting and running, blocks held by requests, blocks with content (held or free).
	Waiting, Running, Held, Cached int
}

// Stats returns the counters.
func (e *Engine) Stats() EngineStats {
	s := e.stats
	s.Waiting, s.Running = e.waiting.len(), len(e.running)
	s.Held, s.Cached = e.config.Blocks-e.pool.free, e.pool.cached
	return s
}
