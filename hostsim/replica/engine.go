package replica

import "time"

// EngineConfig describes one model server's scheduler and memory. See Preset for whole sets of numbers.
type EngineConfig struct {
	// BlockTokens is the size of a cache block in tokens, 1 or more. Hybrid models cache at a large aligned block.
	BlockTokens int
	// Blocks is the size of the KV pool in blocks, 1 or more.
	Blocks int
	// MaxBatchedTokens is the token budget of one step, 1 or more.
	MaxBatchedTokens int
	// MaxSequences bounds the requests that run at once, 1 or more.
	MaxSequences int
	// Step tells how long a step takes.
	Step StepModel
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

// Request is one turn on an engine. The engine fills the fields below Keys.
type Request struct {
	// Prompt and Output are lengths in tokens; Prompt 1 or more, Output zero or more (zero ends with the prefill, as one
	// token).
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
	// Queried is the number of prompt tokens that were looked up, once for each attempt to admit the request.
	Queried int64
	// Preemptions counts how often the request lost its blocks.
	Preemptions int
}

// Engine is one model server: a wait queue, running requests, a block pool with a prefix cache. A step is one event:
//
//	for end, busy := e.Start(now); busy; end, busy = e.Start(now) {
//		now = end
//		for _, r := range e.End() { ... finished ... }
//	}
//
// Not safe for concurrent use.
type Engine struct{}

// NewEngine returns an idle engine with an empty cache. Errors: ErrConfig.
func NewEngine(c EngineConfig) (*Engine, error) { panic("not yet") }

// Submit puts a request at the end of the wait queue. Allowed at any time; a step that runs does not see it. A request
// that the empty pool could not hold is refused with ErrTooLong.
func (e *Engine) Submit(now time.Duration, r *Request) error { panic("not yet") }

// Start begins a step at now and returns when it ends, or false when there is nothing to do.
func (e *Engine) Start(now time.Duration) (end time.Duration, busy bool) { panic("not yet") }

// End ends the running step and returns the requests that are finished by it, valid until the next call.
func (e *Engine) End() []*Request { panic("not yet") }

// Crash takes everything: it returns the requests that waited or ran, and empties the cache.
func (e *Engine) Crash() []*Request { panic("not yet") }

// ResetCache forgets all cached content, as weights that change make it worthless; running requests go on.
func (e *Engine) ResetCache() { panic("not yet") }

// EngineStats counts since NewEngine. Tokens are prompt tokens.
type EngineStats struct {
	Requests, PromptTokens, CachedTokens, QueriedTokens, OutputTokens int64
	Steps, Preemptions                                                int64
	Busy                                                              time.Duration
	// Now: requests waiting and running, blocks held by requests, blocks with content (held or free).
	Waiting, Running, Held, Cached int
}

// Stats returns the counters.
func (e *Engine) Stats() EngineStats { panic("not yet") }

// AppendKeys appends the keys of the engine's full blocks of tokens tokens, whose content ids name in blocks of idTokens
// each. It relies on ids that differ as soon as anything before them differs (trace.Session, invariant 2). A block of the
// engine that ends beyond the last id has no key.
func AppendKeys(dst []uint64, ids []uint64, idTokens, blockTokens, tokens int) []uint64 { panic("not yet") }
