package main

import (
	"context"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// spacing is the time between requests that are to arrive in order. A request takes a millisecond or two to the engine's
// queue.
const spacing = 30 * time.Millisecond

// play sends a campaign to the engine and records what it answers.
func play(ctx context.Context, v *server, e settings, c campaign) (*recording, error) {
	r := &recording{settings: e, Campaign: c.name}
	if err := v.reset(ctx); err != nil {
		return nil, err
	}
	before, err := v.preemptions(ctx)
	if err != nil {
		return nil, err
	}
	c.each(func(_ int, q *request) { r.Rows = append(r.Rows, row{q.Session, q.Turn, q.Prompt, q.Output, 0}) })
	if c.flight > 0 {
		err = playFreely(ctx, v, c, r.Rows)
	} else {
		err = playSteps(ctx, v, c, r.Rows)
	}
	if err != nil {
		return nil, err
	}
	after, err := v.preemptions(ctx)
	r.Preemptions = after - before
	return r, err
}

// playSteps plays step by step.
func playSteps(ctx context.Context, v *server, c campaign, rows []row) error {
	words := newVocabulary()
	n := 0
	for _, s := range c.steps {
		if s.reset {
			if err := v.reset(ctx); err != nil {
				return err
			}
		}
		answers, err := together(ctx, v, words, s.requests)
		if err != nil {
			return err
		}
		for _, cached := range answers {
			rows[n].Cached = cached
			n++
		}
	}
	return nil
}

// together sends requests while the scheduler stands still, if there are several, lets it go on, and waits for all.
// It returns how many tokens of each were in the cache.
func together(ctx context.Context, v *server, words *vocabulary, requests []request) ([]int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	hold := len(requests) > 1
	if hold {
		if err := v.ask(ctx, http.MethodPost, "/pause?mode=keep&clear_cache=false", nil, nil); err != nil {
			return nil, err
		}
	}
	answers := make([]int, len(requests))
	var all sync.WaitGroup
	for i := range requests {
		prompt := words.prompt(&requests[i])
		all.Go(func() {
			var err error
			if answers[i], err = v.complete(ctx, prompt, &requests[i]); err != nil {
				cancel(err)
			}
		})
		if hold {
			time.Sleep(spacing)
		}
	}
	if hold {
		if err := v.ask(ctx, http.MethodPost, "/resume", nil, nil); err != nil {
			cancel(err)
		}
	}
	all.Wait()
	return answers, context.Cause(ctx)
}

// playFreely has clients take requests from the campaign, each the next as soon as it has an answer.
func playFreely(ctx context.Context, v *server, c campaign, rows []row) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	words := newVocabulary()
	var prompts [][]int
	for _, s := range c.steps {
		prompts = append(prompts, words.prompt(&s.requests[0]))
	}
	var next atomic.Int64
	var clients sync.WaitGroup
	for range c.flight {
		clients.Go(func() {
			for {
				i := int(next.Add(1)) - 1
				if i >= len(prompts) || ctx.Err() != nil {
					return
				}
				var err error
				if rows[i].Cached, err = v.complete(ctx, prompts[i], &c.steps[i].requests[0]); err != nil {
					cancel(err)
					return
				}
			}
		})
	}
	clients.Wait()
	return context.Cause(ctx)
}
