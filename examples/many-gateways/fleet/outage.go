package fleet

import (
	"context"
	"fmt"
	"time"
)

// Outage is what clients and gateways had of an etcd, or a part of it, that was away for a while under load.
type Outage struct {
	// Meanwhile are the sessions of the load: each meets one gateway and, 0.7 s later, the other.
	Meanwhile Sessions
	// TimedOut are the questions that were waited for in vain, Unreachable those that failed at once.
	TimedOut, Unreachable uint64
	// Degraded is for how long one gateway or the other did without etcd since the beginning.
	Degraded time.Duration
	// Began and Ended are when it went, and when it was back.
	Began, Ended time.Time
}

// During sends 300 turns a second for eleven seconds. After the second one begin is called, and end after it has lasted that long.
// The gateways agree before.
func (f *Fleet) During(ctx context.Context, name string, begin, end func() error, lasts time.Duration) (o Outage, err error) {
	before, err := f.Reported(ctx)
	if err != nil {
		return o, err
	}
	load := Load{Name: name, Sessions: 900, Turns: 3, Every: 10 * time.Millisecond, Gap: 700 * time.Millisecond}
	done := make(chan Sessions, 1)
	go func() { done <- f.Run(ctx, load) }()
	time.Sleep(2 * time.Second)
	watched, stop := context.WithCancel(ctx)
	defer stop()
	degraded := make(chan time.Duration, 1)
	go func() { degraded <- f.degraded(watched) }()
	o.Began = time.Now()
	err = begin()
	time.Sleep(lasts)
	if failed := end(); err == nil {
		err = failed
	}
	o.Ended = time.Now()
	o.Meanwhile = <-done
	stop()
	o.Degraded = <-degraded
	if err != nil {
		return o, err
	}
	time.Sleep(2500 * time.Millisecond) // metrics follow once a second
	after, err := f.Reported(ctx)
	o.TimedOut = after.Of("", "timeout") - before.Of("", "timeout")
	o.Unreachable = after.Of("", "unreachable") - before.Of("", "unreachable")
	return o, err
}

// Slow is how many turns took more than 45 ms: as long as a question that is waited for in vain.
func (o Outage) Slow() int {
	return len(o.Meanwhile.Took(func(_ int, a Answer) bool { return a.Took > 45*time.Millisecond }))
}

// String is a line for logs.
func (o Outage) String() string {
	took := o.Meanwhile.Took(Any)
	return fmt.Sprintf("%d turns, %d failed: %d questions timed out, %d failed at once; %d turns took more than 45 ms; p50 %v, p99 %v; "+
		"%d of %d sessions had turns on two replicas; a gateway did without etcd for %v",
		o.Meanwhile.Turns(), len(o.Meanwhile.Failed()), o.TimedOut, o.Unreachable, o.Slow(), Quantile(took, 0.5), Quantile(took, 0.99),
		len(o.Meanwhile.Disagreeing()), len(o.Meanwhile), o.Degraded)
}

// Reported sums up the calls to etcd that all gateways' metrics tell of.
func (f *Fleet) Reported(ctx context.Context) (Calls, error) {
	sum := Calls{}
	for _, g := range f.Gateways {
		calls, err := g.Calls(ctx)
		if err != nil {
			return nil, err
		}
		for name, n := range calls {
			sum[name] += n
		}
	}
	return sum, nil
}

// degraded looks at the gateways' states until ctx ends.
func (f *Fleet) degraded(ctx context.Context) (sum time.Duration) {
	last := time.Now()
	for ctx.Err() == nil {
		time.Sleep(50 * time.Millisecond)
		now := time.Now()
		if ok, _, err := f.InState(ctx, "ok"); err == nil && !ok {
			sum += now.Sub(last)
		}
		last = now
	}
	return sum.Round(10 * time.Millisecond)
}

// InState reports whether all gateways tell that state of their agreement, and what they tell.
func (f *Fleet) InState(ctx context.Context, state string) (all bool, told string, err error) {
	all = true
	for i, g := range f.Gateways {
		s, err := g.Status(ctx)
		if err != nil || len(s.Pools) != 1 {
			return false, told, fmt.Errorf("fleet: status of gateway %d: %d pools, %w", i, len(s.Pools), err)
		}
		a := s.Pools[0].Agreement
		told += fmt.Sprintf("gateway %d: %+v; ", i, a)
		all = all && a.State == state && (state != "ok" || a.Breaker == "closed" && a.PolledMS >= 0)
	}
	return all, told, nil
}
