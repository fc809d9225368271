package main

import "context"

var sticky = experiment{
	name:  "sticky",
	title: "A sticky turn",
	about: "Turns of pinned sessions, round and round. `bare` has no plugin. `empty` is official Go's wasm with the callbacks " +
		"of Pinwheel, none of which does anything. `floor` makes in hand-written wasm, without the SDK and without any check, the " +
		"host calls that a turn cannot do without. *Added* is CPU beyond `bare` in the same round.",
	run: runSticky,
}

// stickyOrders are the requests: the smallest that there are, and what an OpenAI SDK sends.
func (b *bench) stickyOrders() (names []string, orders []order) {
	get, post := b.turns(), b.turns()
	post.Body, post.SDK = 2048, true
	return []string{"GET", "POST, 2 KB"}, []order{get, post}
}

func runSticky(ctx context.Context, b *bench) ([]row, error) {
	arms := b.modulesBeside(bare, withEmpty, withFloor, withPinwheel)
	names, orders := b.stickyOrders()
	var running []*arm
	for _, name := range arms {
		a, err := b.start(ctx, b.plain(name))
		if err != nil {
			return nil, err
		}
		if err := b.open(a, b.Sessions); err != nil {
			return nil, err
		}
		running = append(running, a)
	}
	var subjects []subject // what is compared stands side by side
	for _, o := range orders {
		for _, a := range running {
			subjects = append(subjects, subject{arm: a, order: o})
		}
	}
	all, err := b.rounds(ctx, b.Rounds, subjects)
	if err != nil {
		return nil, err
	}
	if err := b.onlySticky(ctx, running[3], b.Sessions); err != nil {
		return nil, err
	}
	var rows []row
	for o, request := range names {
		of := func(arm int) series { return all[o*len(arms)+arm] }
		base, floor := of(0), of(2).added(of(0))
		for i, arm := range arms {
			s := of(i)
			rows = append(rows, newRow(request, arm, "CPU", "us", s.of(cpuOf)))
			if arm != bare {
				rows = append(rows,
					newRow(request, arm, "added", "us", s.added(base)),
					newRow(request, arm, "added, of floor", times, combine(s.added(base), floor, over)))
			}
			rows = append(rows, newRow(request, arm, "CPU, of bare", times, combine(s.of(cpuOf), base.of(cpuOf), over)),
				newRow(request, arm, "p50", "us", s.of(p50Of)), newRow(request, arm, "p99", "us", s.of(p99Of)),
				newRow(request, arm, "rate", "/s", s.of(rateOf)))
		}
	}
	return rows, nil
}
