package main

import (
	"context"
	"fmt"
)

var workers = experiment{
	name:  "workers",
	title: "More worker threads",
	about: "First turns alone, each of a session that never came before, at Envoys with one to four worker threads. Neither they nor the " +
		"load are held to a CPU: with fewer CPUs than threads the rate says how they share, not how they scale. A *retry* is a worker " +
		"that found the pool's record changed by another in between, and did its placement again. *Lock* is the time for which worker threads " +
		"slept because another had a lock, Envoy's on shared data or any other; bare Envoy's is what is not ours.",
	how: func(s settings) string {
		return fmt.Sprintf("%d connections, %d rounds of %v", s.Connections, s.Rounds, s.Duration)
	},
	run: runWorkers,
}

const mostWorkers = 4

func runWorkers(ctx context.Context, b *bench) ([]row, error) {
	if err := b.newLoad(false); err != nil {
		return nil, err
	}
	o := b.turns()
	o.Sessions = 0
	var subjects []subject
	for n := 1; n <= mostWorkers; n++ {
		for _, name := range []string{bare, withPinwheel} {
			g := b.plain(name)
			g.workers, g.sessions, g.free = n, 1_000_000, true
			a, err := b.start(ctx, g)
			if err != nil {
				return nil, err
			}
			// Each worker's first requests compile its code.
			if _, err := b.load.run(order{Addr: a.addr, Connections: b.Connections, Requests: 1000}); err != nil {
				return nil, err
			}
			subjects = append(subjects, subject{arm: a, order: o, waits: true})
		}
	}
	all, err := b.rounds(ctx, b.Rounds, subjects)
	if err != nil {
		return nil, err
	}
	var counts []decisions
	for n := range mostWorkers {
		d, err := b.allPlaced(ctx, subjects[2*n+1].arm)
		if err != nil {
			return nil, err
		}
		counts = append(counts, d)
	}
	if err := b.newLoad(b.Pin); err != nil {
		return nil, err
	}
	var rows []row
	for n := 1; n <= mostWorkers; n++ {
		of := "1 worker"
		if n > 1 {
			of = fmt.Sprintf("%d workers", n)
		}
		base, s := all[2*n-2], all[2*n-1]
		d := counts[n-1]
		rows = append(rows, newRow(of, bare, "rate", "/s", base.of(rateOf)), newRow(of, bare, "CPU", "us", base.of(cpuOf)),
			newRow(of, bare, "lock", "us", base.of(lockOf)), newRow(of, withPinwheel, "lock", "us", s.of(lockOf)),
			newRow(of, withPinwheel, "rate", "/s", s.of(rateOf)), newRow(of, withPinwheel, "CPU", "us", s.of(cpuOf)),
			newRow(of, withPinwheel, "added", "us", s.added(base)),
			newRow(of, withPinwheel, "rate, of bare", times, combine(s.of(rateOf), base.of(rateOf), over)),
			newRow(of, withPinwheel, "added, of one worker", times, combine(s.added(base), all[1].added(all[0]), over)),
			newRow(of, withPinwheel, "retries in 1,000", "", []float64{float64(d.retries) * 1000 / float64(d.placed)}))
	}
	return rows, nil
}
