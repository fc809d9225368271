// Package trace reads recorded LLM sessions: who sent how many tokens, when, and which blocks of the prompt were the
// same as before. It holds no text. Replays and simulated replicas need nothing more to tell a cache hit from a miss.
package trace

import (
	"errors"
	"io"
	"time"
)

// Reader yields sessions one after another. A bad line is a *LineError, after which Next goes on with what follows it;
// io.EOF is the end. Not safe for concurrent use.
type Reader interface {
	Next() (Session, error)
}

// Session is one conversation: an agent whose turns follow each other.
//
// Invariants of every Session that a reader returns:
//  1. Turns is not empty, and At never decreases along it.
//  2. Two turns share a block id, in one session or in two, exactly when they share that block's content and
//     everything before it in the trace's terms.
type Session struct {
	// ID is unique in its trace.
	ID string
	// Parent is the ID of the session that started this one as a sub-agent, or empty.
	Parent string
	// Group names the sessions that are samples of one task and so begin with one prompt; empty where there is none.
	Group string
	// BlockTokens is the number of prompt tokens that one block id stands for, 1 or more. Only full blocks have an id: a
	// prompt of n tokens has n/BlockTokens of them.
	BlockTokens int
	// Replays says that a turn's prompt goes on from the prompt before it and its generated tokens, token by token, as in
	// rollouts that feed back what was sampled. False where the trace does not tell: then what was generated is nobody's
	// prefix.
	Replays bool
	// Tool and System are how many tokens of tool definitions and of system prompt the prompt begins with, where the trace
	// tells; zero where it does not. Sessions in which both are equal share them.
	Tool, System int
	// Start is when the first turn was sent: measured from the trace's beginning where its sessions have one clock
	// (Mooncake, qwen-bailian, decision logs), else from the first turn of the outermost parent. Zero or more.
	Start time.Duration
	// Turns are in the order of the conversation.
	Turns []Turn
}

// Turn is one request of a session and what was recorded about its answer.
type Turn struct {
	// At is when the request was sent, measured from the session's Start. Zero or more.
	At time.Duration
	// Input is the prompt's length in tokens, 1 or more: the whole conversation so far, not only what is new.
	Input int
	// Output is the answer's length in tokens, zero or more.
	Output int
	// Think is the pause between the answer to the turn before and this request: tools, tests, people. Zero or more;
	// zero also where it is unknown because the answer's end was not recorded.
	Think time.Duration
	// API is how long the recorded service took to answer. Zero means that it was not recorded.
	API time.Duration
	// Blocks names the prompt's full blocks from its beginning, as runs: Input/BlockTokens of the session's ids in all.
	Blocks []Run
	// Tail is the id of the prompt's last block where that is not full and the trace names it all the same, as Mooncake's and
	// qwen-bailian's do. Zero elsewhere. A tail's block is in no cache; it is kept so that what a trace counts can be counted.
	Tail uint64
}

// ReadAll returns all remaining sessions of r. It stops at the first error, a bad line too, and returns what came before.
func ReadAll(r Reader) ([]Session, error) {
	var all []Session
	for {
		s, err := r.Next()
		switch {
		case errors.Is(err, io.EOF):
			return all, nil
		case err != nil:
			return all, err
		}
		all = append(all, s)
	}
}

// Run is Count consecutive block ids that begin with First.
type Run struct {
	First uint64
	Count int
}

// BlockCount returns the number of ids in runs.
func BlockCount(runs []Run) int {
	n := 0
	for _, r := range runs {
		n += r.Count
	}
	return n
}

// AppendBlocks appends the ids that runs stand for to dst and returns the extended slice.
func AppendBlocks(dst []uint64, runs []Run) []uint64 {
	for _, r := range runs {
		for i := range uint64(r.Count) {
			dst = append(dst, r.First+i)
		}
	}
	return dst
}

// appendRun appends a run, joined to the last one where it follows on. An empty run is left out.
func appendRun(runs []Run, r Run) []Run {
	if r.Count == 0 {
		return runs
	}
	if n := len(runs); n > 0 && runs[n-1].First+uint64(runs[n-1].Count) == r.First {
		runs[n-1].Count += r.Count
		return runs
	}
	return append(runs, r)
}
