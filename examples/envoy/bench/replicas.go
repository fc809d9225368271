package main

import (
	"context"
	"fmt"
)

var replicas = experiment{
	name:  "replicas",
	title: "More replicas",
	about: "Turns of pinned sessions (*sticky*), and first turns, each of a session that never came before (*placement*), with 4, 64 and " +
		"1,024 replicas, beside an Envoy without a plugin that has as many. New sessions are released after each measurement, outside of it.",
	run: runReplicas,
}

// The loads of the experiments that compare both.
const (
	stickyTurns = "sticky"
	placement   = "placement"
)

// replicaCounts are the fleets; the second is the one of the goals.
var replicaCounts = []int{4, 64, 1024}

func replicaCase(n int) string { return number(float64(n)) + " replicas" }

func runReplicas(ctx context.Context, b *bench) ([]row, error) {
	var subjects []subject
	for _, n := range replicaCounts {
		g := b.plain(bare)
		g.replicas = b.load.replicas[:n]
		without, err := b.start(ctx, g)
		if err != nil {
			return nil, err
		}
		g = b.plain(withPinwheel)
		// Room for what a measurement opens.
		g.replicas, g.sessions = b.load.replicas[:n], 2*b.Sessions
		with, err := b.start(ctx, g)
		if err != nil {
			return nil, err
		}
		for _, a := range []*arm{without, with} {
			if err := b.open(a, b.Sessions); err != nil {
				return nil, err
			}
		}
		subjects = append(subjects, subject{arm: without, order: b.turns()}, subject{arm: with, order: b.turns()}, b.placing(with))
	}
	all, err := b.rounds(ctx, b.Rounds, subjects)
	if err != nil {
		return nil, err
	}
	var rows []row
	added := func(n, i int) []float64 { return all[3*n+i].added(all[3*n]) }
	for n, count := range replicaCounts {
		of := replicaCase(count)
		rows = append(rows, newRow(of, bare, "CPU", "us", all[3*n].of(cpuOf)))
		for i, load := range []string{stickyTurns, placement} {
			rows = append(rows, newRow(of, load, "CPU", "us", all[3*n+i+1].of(cpuOf)),
				newRow(of, load, "added", "us", added(n, i+1)),
				newRow(of, load, "added, of sticky", times, combine(added(n, i+1), added(n, 1), over)),
				newRow(of, load, fmt.Sprintf("added, of %d replicas", replicaCounts[0]), times, combine(added(n, i+1), added(0, i+1), over)))
		}
		if _, err := b.allPlaced(ctx, subjects[3*n+1].arm); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// placing is a load of first turns alone, whose sessions are released after each measurement.
func (b *bench) placing(a *arm) subject {
	o := b.turns()
	o.Sessions = 0
	return subject{arm: a, order: o, between: func() error {
		_, err := b.load.run(order{Addr: a.addr, Release: true})
		return err
	}}
}
