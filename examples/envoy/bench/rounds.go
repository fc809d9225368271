package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// subject is one thing that is measured in each round: a load on an arm.
type subject struct {
	arm   *arm
	order order // its Addr is the arm's, its Duration the settings'
	// waits says that the time is measured that worker threads wait for locks.
	waits bool
	// between runs after each measurement, outside of it. Nil does nothing.
	between func() error
}

// sample is one measurement.
type sample struct {
	CPU      float64 // microseconds of the arm's CPU per request
	Rate     float64 // requests per second
	P50, P99 float64 // microseconds of latency
	Lock     float64 // microseconds per request that the arm's workers waited for locks, if measured
}

func cpuOf(s sample) float64  { return s.CPU }
func rateOf(s sample) float64 { return s.Rate }
func p50Of(s sample) float64  { return s.P50 }
func p99Of(s sample) float64  { return s.P99 }
func lockOf(s sample) float64 { return s.Lock }

// series are samples of one subject, one a round. Values of the same index are from the same round and may be compared.
type series []sample

// of takes one figure out of each sample.
func (s series) of(figure func(sample) float64) []float64 {
	v := make([]float64, len(s))
	for i := range s {
		v[i] = figure(s[i])
	}
	return v
}

// added is the CPU that s needs beyond a base, in each round.
func (s series) added(base series) []float64 { return combine(s.of(cpuOf), base.of(cpuOf), minus) }

func minus(a, b float64) float64 { return a - b }
func over(a, b float64) float64  { return a / b }

// combine computes a figure of each round from two.
func combine(a, b []float64, f func(a, b float64) float64) []float64 {
	v := make([]float64, len(a))
	for i := range a {
		v[i] = f(a[i], b[i])
	}
	return v
}

// slice is how long one subject runs before the next does: what disturbs a machine for longer comes to all alike.
const slice = 100 * time.Millisecond

// rounds measures the subjects so many times. In a round they take turns of a slice until each has had its whole time, every
// second turn from the last to the first: what one leaves behind then comes to each neighbour alike. The result has a
// series for each subject, of one sample a round.
func (b *bench) rounds(ctx context.Context, count int, subjects []subject) ([]series, error) {
	all := make([]series, len(subjects))
	order := make([]int, len(subjects))
	for i := range order {
		order[i] = i
	}
	turns := max(1, int(b.Duration/slice))
	b.progress.loop(count * turns * len(subjects))
	for round := range count {
		sums := make([]sum, len(subjects))
		for range turns {
			for _, i := range order {
				s := subjects[i]
				s.order.Duration = b.Duration / time.Duration(turns)
				if err := b.measure(ctx, s, &sums[i]); err != nil {
					return nil, err
				}
				b.progress.step(fmt.Sprintf("round %d of %d", round+1, count))
			}
			slices.Reverse(order)
		}
		for i := range sums {
			all[i] = append(all[i], sums[i].sample())
		}
	}
	return all, nil
}

// sum is what one subject did in the turns of a round.
type sum struct {
	requests     int
	cpu, elapsed time.Duration
	lock         time.Duration
	p50, p99     []float64
}

// sample is the round's. Of latencies it has the turns' medians and 99th percentiles, averaged.
func (s *sum) sample() sample {
	return sample{
		CPU:  micros(s.cpu) / float64(s.requests),
		Rate: float64(s.requests) / s.elapsed.Seconds(),
		P50:  mean(s.p50), P99: mean(s.p99),
		Lock: micros(s.lock) / float64(s.requests),
	}
}

func mean(values []float64) (m float64) {
	for _, v := range values {
		m += v / float64(len(values))
	}
	return m
}

// measure adds one turn of a subject.
func (b *bench) measure(ctx context.Context, s subject, to *sum) error {
	if ctx.Err() != nil {
		return errors.New("bench: interrupted")
	}
	before, err := s.arm.cpu()
	if err != nil {
		return err
	}
	s.order.Addr = s.arm.addr
	var w *waits
	if s.waits {
		if w, err = watchWaits(s.arm.envoy.Pid()); err != nil {
			return err
		}
	}
	t, err := b.load.run(s.order)
	if err != nil {
		return fmt.Errorf("%s: %w\n%s", s.arm.name, err, s.arm.logs())
	}
	after, err := s.arm.cpu()
	if err != nil {
		return err
	}
	if w != nil {
		to.lock += time.Duration(w.end() * float64(t.Elapsed))
	}
	to.requests += t.Requests
	to.cpu += after - before
	to.elapsed += t.Elapsed
	to.p50, to.p99 = append(to.p50, micros(t.P50)), append(to.p99, micros(t.P99))
	if s.between != nil {
		return s.between()
	}
	return nil
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// turns is the usual order: turns of the settings' sessions. rounds says for how long.
func (b *bench) turns() order {
	return order{Connections: b.Connections, Sessions: b.Sessions}
}

// open sends so many sessions' first turns, by which a plugin pins them.
func (b *bench) open(a *arm, sessions int) error {
	const some = 20_000
	b.progress.loop((sessions + some - 1) / some)
	for from := 0; from < sessions; from += some {
		_, err := b.load.run(order{Addr: a.addr, Connections: b.Connections, Sessions: sessions, From: from, Requests: min(some, sessions-from)})
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", a.name, err, a.logs())
		}
		b.progress.step(a.name + ": opening sessions")
	}
	return nil
}
