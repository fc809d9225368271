package main

import (
	"context"
	"fmt"
	"time"
)

// decisions are Pinwheel's own counts of why requests went where they went.
type decisions struct {
	total, pinned, placed, retries uint64
	all                            map[string]uint64
}

// decisionsOf reads the counts of an arm once they hold all its requests: the plugin adds them up at its ticks.
func (b *bench) decisionsOf(ctx context.Context, a *arm) (d decisions, err error) {
	const reason = "wasmcustom.pinwheel_decisions_total.pool.default.policy.sticky_least_loaded.reason."
	sent := uint64(b.load.sent[a.addr])
	for range 100 {
		if d.all, err = a.envoy.Admin.Stats(ctx, `^wasmcustom\.pinwheel_decisions_total`); err != nil {
			return d, err
		}
		d.total = 0
		for _, n := range d.all {
			d.total += n
		}
		if d.total >= sent {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if d.total != sent {
		return d, fmt.Errorf("bench: %d requests sent, %d decided: %v", sent, d.total, d.all)
	}
	d.pinned, d.placed = d.all[reason+"pinned"], d.all[reason+"placed"]
	stats, err := a.envoy.Admin.Stats(ctx, `^wasmcustom\.pinwheel_cas_retries_total`)
	d.retries = stats["wasmcustom.pinwheel_cas_retries_total.pool.default"]
	return d, err
}

// onlySticky checks that what was measured was turns of pinned sessions, so many.
func (b *bench) onlySticky(ctx context.Context, a *arm, sessions int) error {
	d, err := b.decisionsOf(ctx, a)
	if err == nil && (d.placed > uint64(sessions) || d.pinned == 0 || d.pinned+d.placed != d.total) {
		err = fmt.Errorf("bench: not a run of sticky turns: %v", d.all)
	}
	return err
}

// allPlaced checks that no turn went without a pin, and returns the counts.
func (b *bench) allPlaced(ctx context.Context, a *arm) (decisions, error) {
	d, err := b.decisionsOf(ctx, a)
	if err == nil && (d.placed == 0 || d.placed+d.pinned != d.total) {
		err = fmt.Errorf("bench: turns without a pin: %v", d.all)
	}
	return d, err
}
