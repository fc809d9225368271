package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// list is a trace in memory.
type list struct {
	sessions []trace.Session
	next     int
}

func (l *list) Next() (trace.Session, error) {
	if l.next == len(l.sessions) {
		return trace.Session{}, io.EOF
	}
	l.next++
	return l.sessions[l.next-1], nil
}

func open(sessions []trace.Session) func() (trace.Reader, error) {
	return func() (trace.Reader, error) { return &list{sessions: sessions}, nil }
}

// talk is a session of turns whose prompts grow by grow tokens, in blocks of 16 that it shares with nobody.
func talk(id string, first uint64, turns, grow int) trace.Session {
	s := trace.Session{ID: id, BlockTokens: 16}
	for i := range turns {
		input := (i + 1) * grow
		s.Turns = append(s.Turns, trace.Turn{At: time.Duration(i) * time.Second, Input: input, Output: 4,
			Think: 500 * time.Millisecond, Blocks: []trace.Run{{First: first, Count: input / 16}}})
	}
	return s
}

func talks(n, turns, grow int) []trace.Session {
	var all []trace.Session
	for i := range n {
		all = append(all, talk(fmt.Sprintf("s%d", i), uint64(i+1)<<32, turns, grow))
	}
	return all
}

type steady time.Duration

func (s steady) StepTime(b replica.Batch) time.Duration {
	return time.Duration(s) + time.Duration(b.Prefill)*10*time.Microsecond
}

func smallEngine() replica.EngineConfig {
	return replica.EngineConfig{BlockTokens: 16, Blocks: 1000, MaxBatchedTokens: 512, MaxSequences: 8, Step: steady(5 * time.Millisecond)}
}

func campaign(sessions []trace.Session, replicas int) Campaign {
	newRouter, err := Baseline(SessionHash)
	if err != nil {
		panic(err)
	}
	return Campaign{Sessions: open(sessions), Replicas: replicas, Engine: smallEngine(), NewRouter: newRouter}
}

func play(t *testing.T, c Campaign) *SeedResult {
	t.Helper()
	r, err := Run(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	r.DecisionsPerSecond = 0
	return r
}

// One session alone has times that can be told in the head: overhead, prefill, three more steps.
func TestOneSession(t *testing.T) {
	c := campaign([]trace.Session{talk("a", 1, 2, 160)}, 1)
	c.Jitter = -1
	r := play(t, c)
	first := 100*time.Millisecond + 5*time.Millisecond + 1600*time.Microsecond
	end := first + 3*5*time.Millisecond
	// All but the last block of the first prompt's 10 is found, and that one, too: the second prompt goes on beyond it.
	first2 := end + first
	end2 := end + end
	want := []TurnSpan{
		{Sent: 0, Admitted: .1, First: first.Seconds(), End: end.Seconds(), Prompt: 160},
		{Sent: end.Seconds(), Admitted: (end + 100*time.Millisecond).Seconds(), First: first2.Seconds(), End: end2.Seconds(), Prompt: 320, Cached: 160},
	}
	if got := r.Slowest[0].Turns; !reflect.DeepEqual(got, want) {
		t.Errorf("spans\n%+v, want\n%+v", got, want)
	}
	if r.Wall != end2.Seconds() || r.T95 != r.Wall || r.SessionMean != r.Wall {
		t.Errorf("wall %v, t95 %v, mean %v; want %v", r.Wall, r.T95, r.SessionMean, end2.Seconds())
	}
	if r.HitRate != 160./480 || r.Turns != 2 || r.Sessions != 1 {
		t.Errorf("hit rate %v, turns %d, sessions %d", r.HitRate, r.Turns, r.Sessions)
	}
}

// The same campaign gives the same result, another seed another one.
func TestSeeds(t *testing.T) {
	c := campaign(talks(40, 5, 100), 3)
	c.Concurrency, c.Think, c.Clients, c.Gateways = 10, ThinkRL, 3, 2
	c.Seed = 7
	a, b := play(t, c), play(t, c)
	if !reflect.DeepEqual(a, b) {
		t.Errorf("one seed, two results:\n%+v\n%+v", a, b)
	}
	c.Seed = 8
	other := play(t, c)
	if a.Wall == other.Wall || a.Slowest[0].Session == other.Slowest[0].Session && a.Slowest[1].Session == other.Slowest[1].Session {
		t.Errorf("two seeds, one result: %v", a.Wall)
	}
}

// watcher is a router that checks what it is told, around a random choice.
type watcher struct {
	t       *testing.T
	fleet   []Member
	random  *rand.Rand
	last    time.Duration
	first   map[string]int // prompt
	busy    map[string]bool
	open    map[string]bool
	maxOpen int
	waiting int
}

func (w *watcher) at(now time.Duration) {
	if now < w.last {
		w.t.Errorf("time goes back from %v to %v", w.last, now)
	}
	w.last = now
}

func (w *watcher) Turn(now time.Duration, t *Turn) (Decision, error) {
	w.at(now)
	if w.busy[t.Session] {
		w.t.Errorf("session %s has two turns at once", t.Session)
	}
	if w.first[t.Session] == 0 {
		w.first[t.Session] = t.Prompt
	}
	if t.First != (t.Prompt == w.first[t.Session]) {
		w.t.Errorf("turn of %d tokens of session %s says that first is %v", t.Prompt, t.Session, t.First)
	}
	if len(t.Blocks) != t.Prompt/t.BlockTokens {
		w.t.Errorf("%d blocks of %d tokens, prompt of %d", len(t.Blocks), t.BlockTokens, t.Prompt)
	}
	w.busy[t.Session], w.open[t.Session] = true, true
	w.maxOpen = max(w.maxOpen, len(w.open))
	w.waiting++
	return Decision{Replica: w.random.IntN(len(w.fleet)+1) - 1, Reason: "random", Ticket: t.Session}, nil
}

func (w *watcher) Done(now time.Duration, d Decision, _ int) error {
	w.at(now)
	session := d.Ticket.(string)
	if !w.busy[session] {
		w.t.Errorf("turn of session %s ends twice", session)
	}
	delete(w.busy, session)
	w.waiting--
	return nil
}

func (w *watcher) Finish(now time.Duration, session string) error {
	w.at(now)
	if !w.open[session] {
		w.t.Errorf("session %s ends and was not open", session)
	}
	delete(w.open, session)
	return nil
}

func (w *watcher) Members(now time.Duration, fleet []Member) error {
	w.at(now)
	w.fleet = fleet
	return nil
}

func (w *watcher) Close() error { return nil }

func watched(t *testing.T, c *Campaign) *watcher {
	w := &watcher{t: t, random: rand.New(rand.NewPCG(c.Seed, 1)), first: map[string]int{}, busy: map[string]bool{}, open: map[string]bool{}}
	c.NewRouter = func(_ context.Context, _ int, _ uint64, fleet []Member) (Router, error) {
		w.fleet = fleet
		return w, nil
	}
	return w
}

// Whatever happens to a fleet, each turn of each session is served once, and nobody who is not there serves any.
func TestNothingIsLost(t *testing.T) {
	for seed := range uint64(60) {
		random := rand.New(rand.NewPCG(seed, 2))
		sessions := talks(1+random.IntN(40), 1+random.IntN(6), 1+random.IntN(300))
		c := campaign(sessions, 1+random.IntN(6))
		c.Seed, c.Attempts = seed, 1000
		c.Concurrency = random.IntN(12)
		c.Think = []Think{ThinkNone, ThinkRecorded, ThinkRL}[random.IntN(3)]
		c.OpenLoop = random.IntN(4) == 0
		c.Balancer = []Balancer{BalancerLeastRequests, BalancerRoundRobin}[random.IntN(2)]
		c.Schedule = randomSchedule(random, c.Replicas)
		w := watched(t, &c)
		w.t = t
		r := play(t, c)
		checkTotals(t, sessions, r)
		if len(w.busy) > 0 || len(w.open) > 0 || w.waiting != 0 {
			t.Errorf("seed %d: %d turns and %d sessions are still open", seed, len(w.busy), len(w.open))
		}
		if c.Concurrency > 0 && w.maxOpen > c.Concurrency {
			t.Errorf("seed %d: %d sessions open, cap %d", seed, w.maxOpen, c.Concurrency)
		}
		checkSpans(t, c.Schedule, r)
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, c.Schedule)
		}
	}
}

func checkTotals(t *testing.T, sessions []trace.Session, r *SeedResult) {
	t.Helper()
	turns, prompt := 0, int64(0)
	for _, s := range sessions {
		turns += len(s.Turns)
		for _, u := range s.Turns {
			prompt += int64(u.Input)
		}
	}
	var served, cached int64
	for _, s := range r.Replicas {
		served, cached = served+s.PromptTokens, cached+s.CachedTokens
	}
	if r.Turns != turns || r.Sessions != len(sessions) || r.Errors != 0 {
		t.Errorf("%d turns of %d sessions, %d errors; want %d, %d, 0", r.Turns, r.Sessions, r.Errors, turns, len(sessions))
	}
	if served != prompt || r.HitRate != ratio(float64(cached), float64(prompt)) {
		t.Errorf("replicas served %d prompt tokens of %d, %d cached; hit rate %v", served, prompt, cached, r.HitRate)
	}
}

// checkSpans checks the sessions whose spans are kept: times in order, turns in order, nobody away.
func checkSpans(t *testing.T, schedule []Event, r *SeedResult) {
	t.Helper()
	for _, s := range r.Slowest {
		end := -1.
		for _, u := range s.Turns {
			if u.Sent < end || u.Admitted < u.Sent || u.First <= u.Admitted || u.End < u.First {
				t.Errorf("session %s: times of turn %+v after %v", s.Session, u, end)
			}
			end = u.End
			for _, e := range schedule {
				if e.Replica == u.Replica && away(e, schedule, u) {
					t.Errorf("session %s: turn %+v in spite of %v", s.Session, u, e)
				}
			}
		}
	}
}

// away tells whether the event keeps a turn from the replica: none begins where a failure lasts, and none comes, the
// overhead after it was sent, to one that was removed. Times of spans are rounded.
func away(e Event, schedule []Event, u TurnSpan) bool {
	const rounding = 2e-6
	switch e.Kind {
	case EventFail:
		gone := slices.ContainsFunc(schedule, func(r Event) bool { return r.Kind == EventRemove && r.Replica == e.Replica && r.At <= e.At })
		return !gone && u.Admitted > e.At.Seconds()+rounding && (e.For == 0 || u.Admitted < (e.At+e.For).Seconds()-rounding)
	case EventRemove:
		return u.Sent+DefaultOverhead.Seconds() > e.At.Seconds()+rounding
	}
	return false
}

// randomSchedule leaves the fleet at least one replica that joins late.
func randomSchedule(random *rand.Rand, replicas int) []Event {
	var all []Event
	when := func() time.Duration { return time.Duration(random.IntN(4000)) * time.Millisecond }
	for range random.IntN(12) {
		e := Event{Kind: []EventKind{EventFail, EventJoin, EventDrain, EventUndrain, EventRemove, EventUpdate}[random.IntN(6)], At: when()}
		switch {
		case e.Kind.numbered():
			e.Replica = random.IntN(replicas)
		}
		switch e.Kind {
		case EventFail:
			e.For = time.Duration(random.IntN(3)) * 500 * time.Millisecond
		case EventUpdate:
			e.For = when() / 4
			if random.IntN(2) == 0 {
				e.Every = time.Second + when()
			}
		}
		all = append(all, e)
	}
	return append(all, Event{Kind: EventJoin, At: 5 * time.Second})
}

func TestRefused(t *testing.T) {
	fine := campaign(talks(2, 2, 50), 2)
	cases := []struct {
		name   string
		change func(*Campaign)
		want   error
	}{
		{"no trace", func(c *Campaign) { c.Sessions = nil }, ErrCampaign},
		{"no router", func(c *Campaign) { c.NewRouter = nil }, ErrCampaign},
		{"no replicas", func(c *Campaign) { c.Replicas = 0 }, ErrCampaign},
		{"cap", func(c *Campaign) { c.Concurrency = -1 }, ErrCampaign},
		{"deal", func(c *Campaign) { c.Deal = "x" }, ErrCampaign},
		{"balancer", func(c *Campaign) { c.Balancer = "x" }, ErrCampaign},
		{"think", func(c *Campaign) { c.Think = "x" }, ErrCampaign},
		{"event", func(c *Campaign) { c.Schedule = []Event{{Kind: EventFail, Replica: 2}} }, ErrEvent},
		{"engine", func(c *Campaign) { c.Engine.Blocks = 0 }, replica.ErrConfig},
		{"empty session", func(c *Campaign) { c.Sessions = open([]trace.Session{{ID: "a", BlockTokens: 16}}) }, ErrCampaign},
	}
	for _, c := range cases {
		campaign := fine
		c.change(&campaign)
		if _, err := Run(context.Background(), campaign); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", c.name, err, c.want)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ctx, fine); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// Ends of sessions put no further admissions on the agenda of an open loop: each would do so again.
func TestOneAdmission(t *testing.T) {
	sessions := talks(3, 1, 16)
	sessions[1].Start, sessions[2].Start = time.Second, 2*time.Second
	c := campaign(sessions, 1)
	c.OpenLoop = true
	r := &run{Campaign: c.withDefaults(), result: SeedResult{Reasons: map[string]int{}}}
	mustBe(t, r.setUp(t.Context()))
	before := len(r.agenda.heap)
	for range 3 {
		mustBe(t, r.admit())
	}
	if got := len(r.agenda.heap); got != before {
		t.Errorf("%d entries on the agenda, %d before", got, before)
	}
	mustBe(t, r.play(t.Context()))
	if r.result.Sessions != 3 || r.measures.ends[2] < 2*time.Second {
		t.Errorf("%d sessions, the last one ends at %v", r.result.Sessions, r.measures.ends)
	}
}

// How many client processes there are is nothing to a router that does not look at them.
func TestClientsChangeNothingElse(t *testing.T) {
	results := map[int]*SeedResult{}
	for _, clients := range []int{1, 4} {
		c := campaign(talks(20, 5, 160), 3)
		c.Seed, c.Clients = 1, clients
		results[clients] = play(t, c)
	}
	if one, four := results[1].Wall, results[4].Wall; one != four || one == 0 {
		t.Errorf("wall of %v s with one client, %v s with four", one, four)
	}
}
