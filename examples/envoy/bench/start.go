package main

import (
	"context"
	"fmt"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

var start = experiment{
	name:  "start",
	title: "Start and memory",
	about: "From exec until Envoy's admin interface says that it is ready, one worker, each arm started in turns. *First request* is the " +
		"first on a fresh Envoy, without connecting to it but with Envoy's connecting to the replica; it is compared with the median of the " +
		"1,000 that follow on the same connection. Memory is the resident set when ready, before any request; that of a further worker is " +
		"the difference to an Envoy with five, divided by four.",
	how: func(s settings) string { return fmt.Sprintf("%d starts of each, in turns", startsOf(s)) },
	run: runStart,
}

// startsOf is how often each arm is started: it takes seconds.
func startsOf(s settings) int { return min(s.Rounds, 7) }

// manyWorkers is the concurrency of a second start that tells what one more worker costs in memory.
const manyWorkers = 5

// started is what one start tells.
type started struct{ start, cpu, resident, worker, first, median float64 }

func runStart(ctx context.Context, b *bench) ([]row, error) {
	names := b.modulesBeside(bare, withEmpty, withFloor, withPinwheel)
	all := make([][]started, len(names))
	b.progress.loop(startsOf(b.settings) * len(names))
	for range startsOf(b.settings) {
		for i, name := range names {
			b.progress.step(name)
			s, err := b.startOnce(ctx, name)
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], s)
		}
	}
	var rows []row
	of := func(i int, f func(started) float64) (v []float64) {
		for _, s := range all[i] {
			v = append(v, f(s))
		}
		return v
	}
	const empty = 1
	for i, name := range names {
		ready := func(s started) float64 { return s.start }
		cpu := func(s started) float64 { return s.cpu }
		worker := func(s started) float64 { return s.worker }
		rows = append(rows, newRow("", name, "ready", "s", of(i, ready)),
			newRow("", name, "ready, of empty", times, combine(of(i, ready), of(empty, ready), over)),
			newRow("", name, "CPU until ready", "s", of(i, cpu)),
			newRow("", name, "CPU until ready, of empty", times, combine(of(i, cpu), of(empty, cpu), over)),
			newRow("", name, "first request", "us", of(i, func(s started) float64 { return s.first })),
			newRow("", name, "first, of the next", times, of(i, func(s started) float64 { return s.first / s.median })),
			newRow("", name, "memory", "MB", of(i, func(s started) float64 { return s.resident })),
			newRow("", name, "further worker", "MB", of(i, worker)))
		if i > empty {
			rows = append(rows, newRow("", name, "further worker, beyond empty", "MB", combine(of(i, worker), of(empty, worker), minus)))
		}
		for _, m := range b.modules {
			if m.Name == name {
				rows = append(rows, newRow("", name, "module", "MB", []float64{float64(m.Bytes) / 1e6}))
			}
		}
	}
	return rows, nil
}

// startOnce starts one arm, and once more with many workers.
func (b *bench) startOnce(ctx context.Context, name string) (s started, err error) {
	g := b.plain(name)
	a, err := b.start(ctx, g)
	if err != nil {
		return s, err
	}
	defer b.end(a)
	cpu, err := a.cpu()
	if err != nil {
		return s, err
	}
	one, err := envoytest.ResidentBytes(a.envoy.Pid())
	if err != nil {
		return s, err
	}
	first, err := b.load.run(order{Addr: a.addr, Connections: 1, Sessions: 1001, Requests: 1001})
	if err != nil {
		return s, err
	}
	g.workers = manyWorkers
	m, err := b.start(ctx, g)
	if err != nil {
		return s, err
	}
	defer b.end(m)
	many, err := envoytest.ResidentBytes(m.envoy.Pid())
	return started{
		start: a.envoy.StartUp.Seconds(), cpu: cpu.Seconds(), resident: float64(one) / 1e6, worker: float64(many-one) / 1e6 / (manyWorkers - 1),
		first: micros(first.First), median: micros(first.P50),
	}, err
}
