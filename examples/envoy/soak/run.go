package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// settings say how long the soak is, and what happens meanwhile.
type settings struct {
	Version     string        // of Envoy
	Requests    uint64        // answered before it ends
	Sessions    int           // open at once, about
	Connections int           // of the load
	Replicas    int           // to maxReplicas
	Workers     int           // of Envoy
	Events      int           // in cycles of len(cycle)
	Crashes     bool          // guard the module and let workers crash
	IdleTimeout time.Duration // session.idle_timeout
	Drain       time.Duration // of old listeners
	Limit       time.Duration // of the load
	MaxSlope    float64       // bytes for a million requests, see trend; 0 does not judge
	Progress    time.Duration // between two lines, a second at least
	Seed        uint64
	Short       bool // do not wait for repairs, which take the plugin a minute
}

// run is one soak. What is not atomic belongs to the goroutine of play, which holds gate while it reads the clients'.
type run struct {
	ctx      context.Context // of all
	settings settings
	gateway  *gateway
	clients  []*client
	ground   ground
	began    time.Time

	gate     sync.RWMutex // clients hold it for a step; locked, the load is paused
	stop     atomic.Bool
	answered atomic.Uint64
	decided  atomic.Uint64 // requests that the plugin decided, as the load knows
	crash    atomic.Uint32 // odd while a worker has no plugin
	gen      atomic.Uint32 // rises when the connections of before are those of an old configuration
	updating atomic.Bool
	note     atomic.Pointer[string] // the present event

	own         tally // turns that events sent
	events      map[string]int
	ghosts      int    // crashes that left a count too high by one
	crashes     int    // of all kinds
	checkpoints int    // passed
	missing     int64  // decisions that the plugin has not reported, at the last look
	unreported  uint64 // as many may be missing at the next checkpoint
	bound       uint64 // as many may be missing at the end

	mu         sync.Mutex
	violations []string
	violated   int
	series     series
}

const violationsKept = 20

// violation notes that a promise was broken.
func (r *run) violation(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.violated++; r.violated <= violationsKept {
		r.violations = append(r.violations, fmt.Sprintf(format, args...))
	}
}

// soak runs it and reports. It returns a report also of a run that was interrupted by ctx, or that broke a promise: its
// violations then say which. progress gets a line now and then. Errors: of what is not the plugin's doing.
func soak(ctx context.Context, s settings, progress func(string)) (rep report, err error) {
	g, err := startGateway(ctx, s)
	if err != nil {
		return rep, err
	}
	defer g.stop()
	r := &run{ctx: ctx, settings: s, gateway: g, began: time.Now(), events: map[string]int{}}
	watched := make(chan struct{})
	watch, unwatch := context.WithCancel(ctx)
	defer unwatch()
	go func() {
		defer close(watched)
		r.watch(watch, progress)
	}()
	failed := r.load(ctx)
	progress(fmt.Sprintf("%d of %d requests; now the checks, and the idle timeout of %v", r.answered.Load(), s.Requests, s.IdleTimeout))
	if rep.LimitReached = errors.Is(failed, errLimit) && time.Since(r.began) >= s.Limit; rep.LimitReached {
		failed = nil
	}
	rep.LoadS, rep.Requests = time.Since(r.began).Seconds(), r.answered.Load()
	if failed == nil {
		failed = r.settle(ctx, &rep)
	}
	unwatch()
	<-watched
	switch {
	case failed == nil:
	case ctx.Err() != nil:
		rep.Interrupted = true
	default:
		r.violation("%v", failed)
	}
	if !g.envoy.Running() {
		r.violation("Envoy ended: %s", g.envoy.Log.Tail(20))
	}
	r.report(&rep)
	return rep, nil
}

// load runs the clients, and the events beside them.
func (r *run) load(ctx context.Context) error {
	var all sync.WaitGroup
	for i := range r.settings.Connections {
		c := &client{run: r, number: i, rng: random(r.settings.Seed + uint64(i)<<32)}
		r.clients = append(r.clients, c)
	}
	for _, c := range r.clients {
		all.Go(c.loop)
	}
	err := r.play(ctx)
	r.stop.Store(true)
	all.Wait()
	return err
}

// random is a source of its own for each seed.
func random(seed uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, 1)) }

// watch takes samples, and says how far the run is.
func (r *run) watch(ctx context.Context, progress func(string)) {
	const every = time.Second
	tick := time.NewTicker(every)
	defer tick.Stop()
	var last uint64
	said := time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		s, err := look(ctx, r.gateway.envoy)
		if err != nil || r.stop.Load() { // afterwards sessions end, and no request comes
			continue
		}
		s.Requests, s.ElapsedS = r.answered.Load(), time.Since(r.began).Seconds()
		r.mu.Lock()
		r.series.add(s)
		violated := r.violated
		r.mu.Unlock()
		if passed := time.Since(said); passed >= r.settings.Progress {
			now := "-"
			if name := r.note.Load(); name != nil {
				now = *name
			}
			progress(fmt.Sprintf("%d of %d requests, %.0f/s; %d sessions; RSS %.1f MiB, %d VMs of %.1f MiB; %s; %d violations",
				s.Requests, r.settings.Requests, float64(s.Requests-last)/passed.Seconds(), s.Sessions,
				mib(s.RSS), s.WasmMemories, mib(s.Wasm)/float64(max(s.WasmMemories, 1)), now, violated))
			last, said = s.Requests, time.Now()
		}
	}
}

func mib(bytes int64) float64 { return float64(bytes) / (1 << 20) }

// settle checks, after the load, that the plugin knows of exactly the sessions that the clients know of, where they are, and
// of nothing that runs; that all was counted; and that once the clients have been silent for the idle timeout nothing is left.
func (r *run) settle(ctx context.Context, rep *report) error {
	if err := r.checkpoint(ctx); err != nil {
		return err
	}
	if err := r.sameSessions(ctx, rep); err != nil {
		return err
	}
	if err := r.checkpoint(ctx); err != nil { // of the turns of sameSessions
		return err
	}
	if err := r.counted(ctx, rep); err != nil {
		return err
	}
	return r.nothingLeft(ctx, rep)
}

// sameSessions sends turns of all sessions until the plugin's open sessions, replica by replica, are those that the clients
// know: sessions that they left behind are then over. In none of these rounds may a session move.
func (r *run) sameSessions(ctx context.Context, rep *report) error {
	first := true
	err := within(ctx, r.expiry(), "the sessions to be those of the clients", func() (bool, error) {
		if !first {
			select { // a round keeps the sessions alive
			case <-ctx.Done():
			case <-time.After(r.settings.IdleTimeout / 20):
			}
		}
		first = false
		rep.SessionsKnown = make([]int, len(r.gateway.replicas))
		rep.SessionsOpen = make([]int, len(r.gateway.replicas))
		var all sync.WaitGroup
		for _, c := range r.clients {
			all.Go(func() {
				for _, s := range c.sessions {
					c.turn(s, false)
				}
			})
		}
		all.Wait()
		for _, c := range r.clients {
			for _, s := range c.sessions {
				if s.home == unknown {
					return false, errors.New("soak: a session has no replica though all are well")
				}
				rep.SessionsKnown[s.home]++
			}
		}
		list, err := r.gateway.status(ctx)
		if err != nil {
			return false, err
		}
		for _, s := range list {
			if i := r.position(s.Address); i >= 0 {
				rep.SessionsOpen[i] += s.OpenSessions
			}
		}
		counters, err := r.gateway.counters(ctx)
		return r.differ(rep, int(counters["drift_repaired_total.pool.default"])) == 0, err
	})
	for _, c := range r.clients {
		c.hangUp()
	}
	if err != nil {
		return fmt.Errorf("%w: open %v, known %v", err, rep.SessionsOpen, rep.SessionsKnown)
	}
	return nil
}

// expiry is how long to wait for sessions to expire: they are looked for now and then.
func (r *run) expiry() time.Duration { return patience + 2*r.settings.IdleTimeout }

// differ is by how many sessions the plugin's counts differ from the clients' knowledge, but for the one that each crash
// half way left behind and that was not repaired yet.
func (r *run) differ(rep *report, repaired int) (n int) {
	over := 0
	for i, open := range rep.SessionsOpen {
		if over += open - rep.SessionsKnown[i]; open < rep.SessionsKnown[i] {
			n += rep.SessionsKnown[i] - open
		}
	}
	d := over - (r.ghosts - repaired)
	return n + max(d, -d)
}

func (r *run) position(address string) int {
	return slices.IndexFunc(r.gateway.replicas, func(m *replica) bool { return m.addr == address })
}

// counted compares counters.
func (r *run) counted(ctx context.Context, rep *report) error {
	counters, err := r.gateway.counters(ctx)
	if err != nil {
		return err
	}
	t := r.total()
	rep.Decisions = decisions(counters)
	mine := map[string]uint64{}
	for name, n := range t.reasons {
		mine[name] = *n
	}
	mine["keyless"] += r.gateway.probes.Load()
	rep.DecisionsKnown = mine
	exact := r.crashes == 0 && t.HungUp == 0
	for _, reason := range []string{"table_full", "no_replica", "error"} {
		if n := rep.Decisions[reason] + mine[reason]; n != 0 {
			r.violation("%d decisions for reason %s", n, reason)
		}
	}
	for reason, n := range mine {
		if got := rep.Decisions[reason]; exact && got != n || got > n+t.Cut+t.HungUp+r.gateway.failed.Load() || got+r.bound < n {
			r.violation("the plugin reports %d decisions for reason %s, the clients saw %d", got, reason, n)
		}
	}
	for name, n := range counters {
		if fault := strings.HasPrefix(name, "errors_total.") || strings.HasPrefix(name, "panics_total."); fault && n != 0 {
			r.violation("%s is %d", name, n)
		}
	}
	for i, m := range r.gateway.replicas {
		got, want := m.answered.Load(), t.served[i]
		// A replica cannot know whether its answer arrived, and clients do not see what was asked again.
		if got < want || got > want+t.Cut+t.HungUp+t.Retried+t.Broken+r.gateway.failed.Load() {
			r.violation("replica %d answered %d requests, the clients had %d of it", i, got, want)
		}
		rep.Answers = append(rep.Answers, got)
		rep.AnswersKnown = append(rep.AnswersKnown, want)
	}
	if lost, most := t.Cut+t.Refused, uint64(r.crashes*r.settings.Connections); lost > most {
		r.violation("crashes cost %d requests, more than one for each of the %d connections that %d crashes met", lost, r.settings.Connections, r.crashes)
	}
	if kills := r.events["kill"] + 1; t.Broken > uint64(kills*r.settings.Connections) { // the one under way counts at its end
		r.violation("%d answers were broken in the middle by %d kills of replicas, over %d connections", t.Broken, kills, r.settings.Connections)
	}
	return nil
}

// nothingLeft waits, in silence, until no session is left, and no count of one.
func (r *run) nothingLeft(ctx context.Context, rep *report) error {
	return within(ctx, r.expiry(), "all sessions to expire", func() (bool, error) {
		list, err := r.gateway.status(ctx)
		if err != nil {
			return false, err
		}
		left := 0
		for _, s := range list {
			if left += s.OpenSessions; s.Inflight != 0 {
				return false, fmt.Errorf("soak: %d requests run on %s, and nobody sent any", s.Inflight, s.Address)
			}
		}
		counters, err := r.gateway.counters(ctx)
		repaired := int(counters["drift_repaired_total.pool.default"])
		rep.SessionsLeft, rep.Repaired = left, repaired
		if repaired > r.ghosts {
			return false, fmt.Errorf("soak: %d counts repaired after %d crashes that made them wrong", repaired, r.ghosts)
		}
		gauges := uint64(0)
		for name, n := range counters {
			if strings.HasPrefix(name, "sessions.") || strings.HasPrefix(name, "inflight.") {
				gauges += n
			}
		}
		return left == r.ghosts-repaired && gauges == uint64(left) && (r.settings.Short || repaired == r.ghosts), err
	})
}

// total is what all clients counted. The load is over.
func (r *run) total() (t tally) {
	t.add(&r.own)
	for _, c := range r.clients {
		t.add(&c.tally)
	}
	return t
}
