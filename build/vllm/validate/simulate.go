package main

import (
	"slices"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// pace is the speed of the tiny model on one CPU, as measured with one request: 6 ms a step, 28 us a token. It decides
// who is admitted when in a campaign of free clients, and nothing in others.
type pace struct{}

func (pace) StepTime(b replica.Batch) time.Duration {
	return 6*time.Millisecond + time.Duration(b.Tokens)*28*time.Microsecond
}

// turnaround is the time from the end of a step until the client that it answers has its next request in the queue.
const turnaround = 4 * time.Millisecond

// simulate has the model answer a campaign.
func simulate(e settings, c campaign) (*recording, error) {
	m, err := replica.NewEngine(replica.EngineConfig{
		BlockTokens: e.BlockTokens, Blocks: e.Blocks - 1, // the null block is nobody's
		MaxBatchedTokens: e.MaxBatchedTokens, MaxSequences: e.MaxSequences, Step: pace{},
	})
	if err != nil {
		return nil, err
	}
	r := &recording{settings: e, Campaign: c.name}
	requests := make([]*replica.Request, 0)
	c.each(func(i int, q *request) {
		requests = append(requests, modelled(e, i, q))
		r.Rows = append(r.Rows, row{q.Session, q.Turn, q.Prompt, q.Output, 0})
	})
	if c.flight > 0 {
		err = simulateFreely(m, requests, c.flight)
	} else {
		err = simulateSteps(m, c, requests)
	}
	for i, q := range requests {
		r.Rows[i].Cached = q.Cached
	}
	r.Preemptions = int(m.Stats().Preemptions)
	return r, err
}

// modelled is the request with that number as the model gets it.
func modelled(e settings, number int, q *request) *replica.Request {
	ids, tokens := q.IDs, q.Prompt
	if q.Generated != nil {
		ids = slices.Concat(ids, q.Generated)
		tokens += q.Output
	}
	return &replica.Request{Prompt: q.Prompt, Output: q.Output, Tag: number,
		Keys: replica.AppendKeys(nil, ids, idTokens, e.BlockTokens, tokens)}
}

func simulateSteps(m *replica.Engine, c campaign, requests []*replica.Request) error {
	var now time.Duration
	for _, s := range c.steps {
		if s.reset {
			m.ResetCache()
		}
		for _, q := range requests[:len(s.requests)] {
			if err := m.Submit(now, q); err != nil {
				return err
			}
		}
		requests = requests[len(s.requests):]
		for end, busy := m.Start(now); busy; end, busy = m.Start(now) {
			now = end
			m.End()
		}
	}
	return nil
}

// simulateFreely has clients take the requests, each the next when it has its answer.
func simulateFreely(m *replica.Engine, requests []*replica.Request, clients int) error {
	var now time.Duration
	free := make([]time.Duration, clients) // when clients send
	for {
		for len(free) > 0 && free[0] <= now && len(requests) > 0 {
			if err := m.Submit(free[0], requests[0]); err != nil {
				return err
			}
			free, requests = free[1:], requests[1:]
		}
		end, busy := m.Start(now)
		switch {
		case busy:
			now = end
			for range m.End() {
				free = append(free, now+turnaround)
			}
		case len(requests) == 0:
			return nil
		default:
			now = free[0]
		}
	}
}
