package main

import (
	"cmp"
	"slices"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// The trace's prompts are up to 120,000 tokens long and the tiny model has 8,192 positions. A sixteenth of the size
// keeps the shape: each block id of 64 tokens becomes 4 tokens that stand for it alone, so two prompts have as many first
// tokens in common as before, divided by 16.
const (
	scale    = 16
	idTokens = trace.WEKABlockTokens / scale
)

// maxOutput bounds an answer's tokens: what is generated costs a step a token, and nobody's prompt goes on from it.
const maxOutput = 48

// request is one turn as both the engine and the model get it.
type request struct {
	// Session and Turn tell where it comes from: the session's number in the trace, or in the campaign.
	Session, Turn int
	// IDs name the prompt's content, idTokens each, from its beginning; at most idTokens-1 tokens follow them.
	IDs []uint64
	// Prompt and Output are lengths in tokens.
	Prompt, Output int
	// Generated names what will be generated, idTokens each; nil where nobody's prompt goes on from it.
	Generated []uint64
}

// step is what is sent together: the engine's scheduler stands still until it has all of them, in this order. All are
// answered before the next step.
type step struct {
	requests []request
	// reset empties the prefix cache before.
	reset bool
}

// campaign is a series of requests that starts with an empty cache.
type campaign struct {
	name  string
	steps []step
	// flight, if not zero, is the number of clients that take steps of one request each from the series, and send the
	// next as soon as they have their answer: nothing stands still, and the order is the machine's.
	flight int
}

// each calls f with every request and its number, in order.
func (c campaign) each(f func(i int, r *request)) {
	i := 0
	for s := range c.steps {
		for r := range c.steps[s].requests {
			f(i, &c.steps[s].requests[r])
			i++
		}
	}
}

// campaignNames are those of campaigns.
var campaignNames = []string{"edges", "random", "one", "four", "flight"}

// campaigns are those that an engine is played, in that order: the trace's only where its longest request fits.
func campaigns(c settings, sessions []trace.Session) []campaign {
	all := []campaign{
		{name: "edges", steps: edges(c)},
		{name: "random", steps: random(c, 1, 80)},
	}
	requests := byTime(sessions)
	for _, r := range requests {
		if r.Prompt+r.Output > c.longest() {
			return all
		}
	}
	return append(all,
		campaign{name: "one", steps: groups(requests, 1)},
		campaign{name: "four", steps: groups(requests, 4)},
		campaign{name: "flight", steps: groups(requests, 1), flight: 4})
}

// byTime are the turns of all sessions, begun at once, in the order of their recorded times.
func byTime(sessions []trace.Session) []request {
	type timed struct {
		request
		at int64
	}
	var all []timed
	for s, session := range sessions {
		for k, turn := range session.Turns {
			all = append(all, timed{at: int64(session.Start + turn.At), request: request{
				Session: s, Turn: k,
				IDs:    trace.AppendBlocks(nil, turn.Blocks),
				Prompt: max(turn.Input/scale, 1),
				Output: min(max(turn.Output/scale, 1), maxOutput),
			}})
		}
	}
	slices.SortStableFunc(all, func(a, b timed) int { return cmp.Compare(a.at, b.at) })
	requests := make([]request, len(all))
	for i, t := range all {
		requests[i] = t.request
	}
	return requests
}

// groups are steps of n requests each, the last of what is left.
func groups(requests []request, n int) []step {
	var steps []step
	for g := range slices.Chunk(requests, n) {
		steps = append(steps, step{requests: g})
	}
	return steps
}
