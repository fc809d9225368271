package main

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
)

var sessions = experiment{
	name:  "sessions",
	title: "More sessions",
	about: "Turns of pinned sessions while so many are open, `session.max_sessions` laid out for a twentieth more. *Heap* is what Envoy " +
		"says that it has allocated, after less before, for each session: pins and keys of shared data with all that Envoy keeps around " +
		"them. Of few sessions it is mostly the connections.",
	how: func(s settings) string {
		return fmt.Sprintf("%d connections, %d rounds of %v, each from a session drawn at random on", s.Connections, s.Rounds, s.Duration)
	},
	run: runSessions,
}

// sessionCounts are how many sessions are open; of a small run so many hundredths.
var sessionCounts = []int{1000, 30_000, 1_000_000}

func (b *bench) sessionCount(i int) int {
	if b.Small {
		return sessionCounts[i] / 100
	}
	return sessionCounts[i]
}

func sessionCase(i int) string { return number(float64(sessionCounts[i])) + " sessions" }

func runSessions(ctx context.Context, b *bench) ([]row, error) {
	without, err := b.start(ctx, b.plain(bare))
	if err != nil {
		return nil, err
	}
	subjects := []subject{{arm: without, order: b.turns()}}
	var heap []float64
	for i := range sessionCounts {
		n := b.sessionCount(i)
		g := b.plain(withPinwheel)
		g.plugin = map[string]any{"session": map[string]any{"max_sessions": n + n/20 + b.Connections}}
		a, err := b.start(ctx, g)
		if err != nil {
			return nil, err
		}
		o := b.turns()
		// One session: the connections, and what Envoy allocates when it first serves.
		if _, err := b.load.run(order{Addr: a.addr, Connections: b.Connections, Sessions: 1, Requests: 1000}); err != nil {
			return nil, err
		}
		before, err := allocated(ctx, a)
		if err != nil {
			return nil, err
		}
		if err := b.open(a, n); err != nil {
			return nil, err
		}
		after, err := allocated(ctx, a)
		if err != nil {
			return nil, err
		}
		heap = append(heap, (after-before)/float64(n))
		o.Sessions = n
		subjects = append(subjects, subject{arm: a, order: o})
	}
	all, err := b.rounds(ctx, b.Rounds, subjects)
	if err != nil {
		return nil, err
	}
	rows := []row{newRow("", bare, "CPU", "us", all[0].of(cpuOf))}
	for i := range sessionCounts {
		s, few := all[i+1], all[1].added(all[0])
		rows = append(rows, newRow(sessionCase(i), withPinwheel, "CPU", "us", s.of(cpuOf)),
			newRow(sessionCase(i), withPinwheel, "added", "us", s.added(all[0])),
			newRow(sessionCase(i), withPinwheel, "added, of the fewest sessions", times, combine(s.added(all[0]), few, over)),
			newRow(sessionCase(i), withPinwheel, "heap for a session", "B", heap[i:i+1]))
		if err := b.onlySticky(ctx, subjects[i+1].arm, b.sessionCount(i)); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// allocated is what an Envoy's allocator has given out, in bytes.
func allocated(ctx context.Context, a *arm) (float64, error) {
	text, err := a.envoy.Admin.Get(ctx, "/memory")
	if err != nil {
		return 0, err
	}
	var m struct{ Allocated string }
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		return 0, fmt.Errorf("bench: admin /memory: %w", err)
	}
	return strconv.ParseFloat(m.Allocated, 64)
}
