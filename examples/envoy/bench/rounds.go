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
	order order // its Addr is the arm's
	// between runs after each measurement, outside of it. Nil does nothing.
	between func() error
}

// sample is one measurement.
type sample struct {
	CPU      float64 // microseconds of the arm's CPU per request
	Rate     float64 // requests per second
	P50, P99 float64 // microseconds of latency
}

func cpuOf(s sample) float64  { return s.CPU }
func rateOf(s sample) float64 { return s.Rate }
func p50Of(s sample) float64  { return s.P50 }
func p99Of(s sample) float64  { return s.P99 }

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

// rounds measures the subjects in turns, so many times, every second round from the last to the first: what one leaves
// behind then comes to each neighbour alike. The result has a series for each subject.
func (b *bench) rounds(ctx context.Context, count int, subjects []subject) ([]series, error) {
	all := make([]series, len(subjects))
	order := make([]int, len(subjects))
	for i := range order {
		order[i] = i
	}
	b.progress.loop(count * len(subjects))
	for round := range count {
		for _, i := range order {
			s, err := b.measure(ctx, subjects[i])
			if err != nil {
				return nil, err
			}
			all[i] = append(all[i], s)
			b.progress.step(fmt.Sprintf("round %d of %d", round+1, count))
		}
		slices.Reverse(order)
	}
	return all, nil
}

func (b *bench) measure(ctx context.Context, s subject) (sample, error) {
	if ctx.Err() != nil {
		return sample{}, errors.New("bench: interrupted")
	}
	before, err := s.arm.cpu()
	if err != nil {
		return sample{}, err
	}
	s.order.Addr = s.arm.addr
	t, err := b.load.run(s.order)
	if err != nil {
		return sample{}, fmt.Errorf("%s: %w\n%s", s.arm.name, err, s.arm.logs())
	}
	after, err := s.arm.cpu()
	if err == nil && s.between != nil {
		err = s.between()
	}
	return sample{
		CPU:  float64(after-before) / float64(time.Microsecond) / float64(t.Requests),
		Rate: float64(t.Requests) / t.Elapsed.Seconds(),
		P50:  micros(t.P50), P99: micros(t.P99),
	}, err
}

func micros(d time.Duration) float64 { return float64(d) / float64(time.Microsecond) }

// turns is the usual order: turns of the settings' sessions for the settings' time.
func (b *bench) turns() order {
	return order{Connections: b.Connections, Sessions: b.Sessions, Duration: b.Duration}
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
