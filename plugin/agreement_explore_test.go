package plugin

import (
	"encoding/base64"
	"errors"
	"flag"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/etcd"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

var longStories = flag.Bool("stories", false, "run the longer stories of several gateways too, in every order of events: half an hour")

// pair is two gateways, the etcd that they share, and a session, which go through a story in one order of its events.
type pair struct {
	t *testing.T
	hostsim.Fleet
	clock *hostsim.VirtualClock
	etcd  *etcd.Server
	sides []*side
	story story
	// session is how etcd's keys name the session.
	session string

	// homes are what etcd has had for the session's home in this order.
	homes []homeAt
	// released has, of the last finish at whose beginning nothing was under way that could give the session a home, the number
	// of turns that each gateway had had.
	released [2]int
}

// homeAt is a home and the first revision at which etcd was seen with it.
type homeAt struct {
	home     string
	revision int64
}

// side is one of the gateways.
type side struct {
	*gateway
	name  string
	calls *hostsim.HeldCalls
	// executed has etcd's revision after each held call that it carried out, and polled that of the newest poll taken in.
	executed map[int]int64
	polled   int64
	waiting  []waitingRequest
	turns    int
	// fault is the first thing that was wrong in this order.
	fault error
}

type waitingRequest struct {
	stream *hostsim.Stream
	kind   requestKind
}

type requestKind int

const (
	aTurn requestKind = iota
	aFailingTurn
	aFinish
)

// story is some events, of which every order is run.
type story struct {
	name string
	// known: both gateways know the session before.
	known bool
	// Of each gateway, how often something happens: turns, turns that a replica answers with 502, releases and polls; the calls
	// of which it is an event of its own when etcd carries them out and when the plugin hears the answer; and how many
	// fail, of those that etcd has carried out and those that it may still carry out.
	turns, failing, finishes, polls, calls, failures [2]int
	// steps is how often step passes. Polls are then not held.
	steps int
	// long stories run with -stories.
	long   bool
	config string
}

const (
	// exploredConfig has calls wait longer than any story lasts: when one fails is for the order to say.
	exploredConfig = `,"agreement":{"kind":"etcd","cluster":"etcd","timeout":"5s","poll":"100ms"},"session":{"max_sessions":1000}`
	// expiringConfig has buckets of a second, and leases of five. A step is a bit less than the idle timeout.
	expiringConfig = `,"agreement":{"kind":"etcd","cluster":"etcd","timeout":"5s","poll":"1s"},"session":{"max_sessions":1000,"idle_timeout":"2s"}`

	step = 1700 * time.Millisecond
)

var stories = []story{
	{name: "first turns", turns: [2]int{1, 1}, polls: [2]int{1, 0}, calls: [2]int{2, 1}},
	{name: "later turns", turns: [2]int{2, 1}, calls: [2]int{2, 1}},
	{name: "first turns fail", turns: [2]int{1, 1}, calls: [2]int{1, 1}, failures: [2]int{1, 1}},
	{name: "a poll heals", turns: [2]int{2, 0}, polls: [2]int{1, 0}, calls: [2]int{3, 0}, failures: [2]int{1, 0}},
	{name: "finish", known: true, turns: [2]int{0, 1}, finishes: [2]int{1, 0}, polls: [2]int{0, 1}, calls: [2]int{1, 2}},
	{name: "finish fails", known: true, finishes: [2]int{1, 0}, polls: [2]int{1, 1}, calls: [2]int{2, 1}, failures: [2]int{1, 0}},
	{name: "a replica is lost", known: true, turns: [2]int{1, 1}, failing: [2]int{1, 0}, polls: [2]int{0, 1}, calls: [2]int{1, 1}, config: oneFailure},
	{name: "a finish overtakes a first turn", turns: [2]int{1, 0}, finishes: [2]int{0, 1}, polls: [2]int{1, 0}, calls: [2]int{2, 2}},
	{name: "leases end", known: true, turns: [2]int{3, 0}, steps: 4, calls: [2]int{1, 0}},

	{name: "first turns and polls", long: true, turns: [2]int{2, 1}, polls: [2]int{1, 1}, calls: [2]int{3, 2}},
	{name: "a poll heals both", long: true, turns: [2]int{2, 1}, polls: [2]int{1, 1}, calls: [2]int{3, 2}, failures: [2]int{1, 0}},
	{name: "finish and first turns", long: true, turns: [2]int{1, 1}, finishes: [2]int{1, 0}, polls: [2]int{0, 1}, calls: [2]int{2, 2}},
	{name: "finish and turns fail", long: true, known: true, turns: [2]int{0, 1}, finishes: [2]int{1, 0}, polls: [2]int{1, 1}, calls: [2]int{2, 2}, failures: [2]int{1, 1}},
	{name: "both finish", long: true, known: true, turns: [2]int{1, 0}, finishes: [2]int{1, 1}, polls: [2]int{1, 0}, calls: [2]int{3, 1}},
	{name: "both lose the replica", long: true, known: true, turns: [2]int{1, 1}, failing: [2]int{1, 1}, polls: [2]int{1, 1}, calls: [2]int{2, 2}, config: oneFailure},
	{name: "leases end and calls fail", long: true, turns: [2]int{2, 1}, steps: 4, calls: [2]int{2, 2}, failures: [2]int{1, 0}},
}

// start brings two gateways to where the story begins, with etcd's requests as through changes them.
func (st story) start(t *testing.T, through func(*hostsim.HTTPCall)) *pair {
	t.Helper()
	p := &pair{t: t, story: st, etcd: etcd.New(), clock: hostsim.NewVirtualClock()}
	config := exploredConfig
	if st.steps > 0 {
		config = expiringConfig
	}
	serve := p.etcd.HTTPCalls(p.clock)
	for i, name := range []string{"A", "B"} {
		g := &side{name: name, executed: map[int]int64{}}
		g.calls = hostsim.NewHeldCalls(name, func(c *hostsim.HTTPCall) bool {
			if through != nil {
				through(c)
			}
			found := serve(c)
			if st.steps > 0 && !isAboutSession(c) {
				g.polled = p.etcd.Revision()
			}
			return found
		})
		if st.steps > 0 {
			g.calls.Holds = isAboutSession
		}
		g.calls.Through()
		g.gateway = startWith(t, hosttest.Options{Adjust: func(c *hostsim.Config) {
			c.AllowOnHeadersStopIteration = true
			c.LogLevel, c.Seed, c.Clock, c.HTTPCall = hostsim.LogError, uint64(i+1), p.clock, g.calls.HTTPCall
		}}, threeReplicas+config+st.config+`,"admin":{"path":"/pinwheel"}`)
		p.sides, p.Hosts, p.Calls = append(p.sides, g), append(p.Hosts, g.Host.Host), append(p.Calls, g.calls)
	}
	p.Others = append(p.Others, func() func() {
		was := p.etcd.Clone()
		return func() { p.etcd.Restore(was) }
	})
	const rounds = 500 // until the modules' memories have the size that they keep: a new one takes milliseconds to set back
	for range rounds {
		for _, g := range p.sides {
			g.turn("s")
			g.release("s")
		}
		p.Advance(50 * time.Millisecond)
	}
	p.Advance(time.Second)
	p.tilt()
	if st.known {
		for _, g := range p.sides {
			g.turn("s")
		}
	}
	for _, g := range p.sides {
		g.calls.Hold()
	}
	if st.steps == 0 {
		p.clock.Advance(100 * time.Millisecond) // the first polls are due: they do not move the clock
	}
	return p
}

// isAboutSession tells what asks about a session, or changes it, from polls and grants.
func isAboutSession(c *hostsim.HTTPCall) bool { return strings.Contains(string(c.Body), `"compare"`) }

// tilt has gateway A know of so many other sessions on the session's first choice that it chooses another, while B does not
// know of them before its next poll.
func (p *pair) tilt() {
	p.t.Helper()
	g := p.sides[0]
	first := g.turn("s").replica
	p.session = strings.TrimPrefix(p.etcd.Keys("/pinwheel/default/s/")[0], "/pinwheel/default/s/")
	g.release("s")
	p.Advance(time.Second)
	var others []string
	for n := 0; ; n++ {
		other := fmt.Sprint("other ", n)
		if g.turn(other).replica == first {
			others = append(others, other)
		} else {
			g.release(other)
		}
		chosen := g.turn("s").replica
		if g.release("s"); chosen != first {
			break
		}
		if n == 100 {
			p.t.Fatal("the session has but one choice")
		}
	}
	for _, other := range others {
		g.release(other)
	}
	p.Advance(time.Second) // the change log is read
	for _, other := range others {
		g.turn(other)
	}
}

// before forgets the last order.
func (p *pair) before() {
	p.homes, p.released = []homeAt{{p.home(), p.etcd.Revision()}}, [2]int{-1, -1}
	for _, g := range p.sides {
		clear(g.executed)
		g.polled, g.waiting, g.turns, g.fault = p.etcd.Revision(), nil, 0, nil
	}
}

// home is what etcd has for the session, "" for none.
func (p *pair) home() string {
	home, _ := p.etcd.Value("/pinwheel/default/s/" + p.session)
	return home
}

// orders are the story's events and what must be so.
func (p *pair) orders() hostsim.Orders {
	x := hostsim.Orders{Before: p.before, Check: p.check, End: p.end, EndWhen: p.isQuiet}
	for i, g := range p.sides {
		add := func(name string, times int, everything bool, do func()) {
			if times > 0 {
				x.Events = append(x.Events, hostsim.Event{Name: name, Times: times, Do: do, Everything: everything})
			}
		}
		add("turn at "+g.name, p.story.turns[i], false, func() { p.begin(g, aTurn) })
		add("turn at "+g.name+", 502", p.story.failing[i], false, func() { p.begin(g, aFailingTurn) })
		add("finish at "+g.name, p.story.finishes[i], true, func() {
			if !p.isAsked() {
				p.released = [2]int{p.sides[0].turns, p.sides[1].turns}
			}
			p.begin(g, aFinish)
		})
		add(g.name+" polls", p.story.polls[i], false, func() { p.poll(g) })
		x.Events = append(x.Events, p.answers(g, p.story.calls[i], p.story.failures[i])...)
	}
	if p.story.steps > 0 {
		x.Events = append(x.Events, hostsim.Event{Name: "time passes", Times: p.story.steps, Do: func() { p.Advance(step) }})
	}
	return x
}

// poll has a gateway poll, which etcd carries out at once; when the answer comes is an event of its own.
func (p *pair) poll(g *side) {
	at := g.calls.Len()
	for g.calls.Len() == at {
		p.Tick(g.Host.Host)
	}
	for ; at < g.calls.Len(); at++ {
		if !isAboutSession(g.calls.Call(at)) {
			p.execute(g, at)
		}
	}
}

func (p *pair) execute(g *side, i int) {
	g.calls.Execute(i)
	g.executed[i] = p.etcd.Revision()
}

// answers are the events of a gateway's first n calls.
func (p *pair) answers(g *side, n, failures int) (events []hostsim.Event) {
	for i := range n {
		call := fmt.Sprintf("%s's call %d ", g.name, i)
		events = append(events,
			hostsim.Event{Name: call + "is carried out", Ready: func() bool { return g.calls.CanExecute(i) }, Do: func() { p.execute(g, i) }},
			hostsim.Event{Name: call + "is answered", Ready: func() bool { return g.calls.CanAnswer(i) }, Do: func() {
				if !isAboutSession(g.calls.Call(i)) {
					g.polled = max(g.polled, g.executed[i])
				}
				g.calls.Answer(i)
			}})
		if failures > 0 {
			events = append(events, hostsim.Event{Name: call + "fails", Group: g.name + " fails", Times: failures,
				Ready: func() bool { return g.calls.IsOpen(i) }, Do: func() { g.calls.Fail(i, hostsim.TimedOut) }})
		}
	}
	return events
}

// isAsked reports whether something that a turn has asked for may still give the session a home.
func (p *pair) isAsked() bool {
	for _, g := range p.sides {
		for _, r := range g.waiting {
			if r.kind != aFinish {
				return true
			}
		}
		for i := range g.calls.Len() {
			if g.calls.CanExecute(i) && isAboutSession(g.calls.Call(i)) {
				return true
			}
		}
	}
	return false
}

// isQuiet reports whether no gateway waits for a call. One that was given up may be lost.
func (p *pair) isQuiet() bool {
	for _, g := range p.sides {
		for i := range g.calls.Len() {
			if g.calls.IsOpen(i) {
				return false
			}
		}
	}
	return true
}

// begin sends a request of the session. A turn that goes on at once while etcd can be asked must have a pin that is trusted.
func (p *pair) begin(g *side, kind requestKind) {
	_, home, trusted := g.pins(p.session)
	down := g.agreed().down != 0
	headers := turnHeaders("s")
	if kind == aFinish {
		headers.Set(":path", "/finish_session")
	} else {
		g.turns++
	}
	s := g.Worker(0).NewStream()
	step, err := s.RequestHeaders(headers, true)
	switch {
	case err != nil:
		g.fault = err
	case kind == aFinish:
	case step.Flow == hostsim.Forward && !down && (!trusted || replicaOf(s) != home):
		g.fault = fmt.Errorf("%s asks nobody and goes to %s, its pin is to %q (trusted: %v)", g.name, replicaOf(s), home, trusted)
	case step.Flow != hostsim.Forward && trusted && p.story.config == "" && p.story.steps == 0:
		g.fault = fmt.Errorf("%s asks and has a trusted pin to %s", g.name, home)
	}
	g.waiting = append(g.waiting, waitingRequest{s, kind})
}

// look answers and ends the requests that wait no longer.
func (g *side) look() {
	waiting := g.waiting
	g.waiting = nil
	for _, r := range waiting {
		flow := r.stream.RequestReady().Flow
		if flow == hostsim.Wait {
			g.waiting = append(g.waiting, r)
			continue
		}
		switch {
		case r.kind == aFinish:
			if flow != hostsim.Reply || r.stream.LocalReply().Status != 200 {
				g.fault = fmt.Errorf("a finish at %s ends with %v", g.name, flow)
			}
		case flow != hostsim.Forward || replicaOf(r.stream) == "":
			g.fault = fmt.Errorf("a turn at %s ends with %v, replica %q", g.name, flow, replicaOf(r.stream))
		default:
			status := map[bool]string{true: "502", false: "200"}[r.kind == aFailingTurn]
			r.stream.SetProperty("upstream.address", []byte(replicaOf(r.stream)))
			if _, err := r.stream.ResponseHeaders(hostsim.Headers{{":status", status}}, true); err != nil {
				g.fault = err
			}
		}
		if err := r.stream.End(hostsim.EndNormal); err != nil {
			g.fault = err
		}
	}
}

// pins returns the number of pins by address, where the gateway has the session's home, "" for nowhere, and whether it goes
// there without asking.
func (g *side) pins(session string) (count map[string]int, home string, trusted bool) {
	epoch, r := g.agreed().epoch, g.record("default")
	count = map[string]int{}
	for _, key := range g.SharedData().Keys() {
		if !strings.HasPrefix(key, keyRoot+"default/s/") {
			continue
		}
		value, _, _ := g.SharedData().Get(key)
		for sh, i := shard(value), 0; i < sh.len(); i++ {
			pin := sh.pin(i)
			address := r.List[r.Index(pin.Replica)].Address
			count[address]++
			if sessionName(sh.hash(i)) == session {
				home, trusted = address, !sh.doubted(i) && pin.LastSeen >= epoch
			}
		}
	}
	return count, home, trusted
}

// check holds what must be so after every event: no client sees an error, what etcd counts is where sessions are, and a pin
// that a gateway trusts was the session's home when it last polled, or since.
func (p *pair) check() error {
	if home := p.home(); home != p.homes[len(p.homes)-1].home {
		p.homes = append(p.homes, homeAt{home, p.etcd.Revision()})
	}
	for _, held := range p.etcd.Keys("/pinwheel/default/r/") {
		address, session, _ := strings.Cut(strings.TrimPrefix(held, "/pinwheel/default/r/"), "/")
		if home, _ := p.etcd.Value("/pinwheel/default/s/" + session); home != address {
			return fmt.Errorf("etcd counts a session at %s, its home is %q", address, home)
		}
	}
	for _, g := range p.sides {
		if g.look(); g.fault != nil {
			return g.fault
		}
		if err := errors.Join(g.Worker(0).Err(), g.Main().Err()); err != nil {
			return err
		}
		if _, home, trusted := g.pins(p.session); trusted && !p.wasHome(home, g.polled) {
			return fmt.Errorf("%s trusts a pin to %s; since its last poll, of revision %d, etcd had %v", g.name, home, g.polled, p.homes)
		}
	}
	return nil
}

// wasHome reports whether etcd has had that home for the session at that revision or later.
func (p *pair) wasHome(home string, since int64) bool {
	for i, h := range p.homes {
		if h.home == home && (i == len(p.homes)-1 || p.homes[i+1].revision > since) {
			return true
		}
	}
	return false
}

// end lets all calls be answered and polls pass, and holds what must be so when all is quiet: no request waits, a finish after
// which nobody asked has ended the session, both gateways send the next turns to the home that etcd has, and their counts
// are those of their pins.
func (p *pair) end() error {
	poll := 100 * time.Millisecond
	if p.story.steps > 0 {
		poll = time.Second
	}
	for _, g := range p.sides {
		g.calls.Through()
	}
	for range 4 {
		p.Advance(poll)
		for _, g := range p.sides {
			if g.look(); g.fault != nil {
				return g.fault
			}
		}
	}
	home := p.home()
	if p.released == [2]int{p.sides[0].turns, p.sides[1].turns} && home != "" {
		return fmt.Errorf("the session was finished, and is still at home at %s", home)
	}
	for _, g := range p.sides {
		if len(g.waiting) > 0 {
			return fmt.Errorf("%d requests wait at %s for ever", len(g.waiting), g.name)
		}
		if _, at, trusted := g.pins(p.session); trusted && at != home {
			return fmt.Errorf("%s trusts a pin to %s, the home is %q", g.name, at, home)
		}
	}
	for round := range 2 { // in the first a gateway may move the session off a replica that fails it
		var went [2]string
		for i, g := range p.sides {
			g.waiting = nil
			s := g.Worker(0).NewStream()
			g.waiting = append(g.waiting, waitingRequest{s, aTurn})
			if _, err := s.RequestHeaders(turnHeaders("s"), true); err != nil {
				return err
			}
			p.Advance(0)
			if g.look(); g.fault != nil || len(g.waiting) > 0 {
				return fmt.Errorf("the last turn at %s waits (%v)", g.name, g.fault)
			}
			went[i] = replicaOf(s)
		}
		if round == 0 {
			p.Advance(poll)
		} else if went[0] != went[1] || went[0] != p.home() {
			return fmt.Errorf("the last turns went to %s and %s, the home is %q", went[0], went[1], p.home())
		}
	}
	for _, g := range p.sides {
		count, at, trusted := g.pins(p.session)
		if at != p.home() || !trusted {
			return fmt.Errorf("%s has a pin to %q (trusted: %v), the home is %q", g.name, at, trusted, p.home())
		}
		body := g.on(0, hosttest.Request{Method: "GET", Path: "/pinwheel/status"}).ResponseBody
		for address, open := range g.open() {
			_, body, _ := strings.Cut(body, `"`+address+`"`)
			if shown := openSessions.FindStringSubmatch(body); open != count[address] || shown == nil || shown[1] != fmt.Sprint(open) {
				return fmt.Errorf("%s counts %d sessions on %s and shows %v, %d are pinned there", g.name, open, address, shown, count[address])
			}
		}
	}
	return nil
}

var openSessions = regexp.MustCompile(`"open_sessions":(\d+)`)

// Two gateways agree on a session's home in every order of what happens to them, to their requests to etcd and to its answers.
func TestGatewaysAgreeInEveryOrder(t *testing.T) {
	for _, st := range stories {
		if st.long && !*longStories {
			continue
		}
		t.Run(st.name, func(t *testing.T) {
			p := st.start(t, nil)
			began := time.Now()
			explored, err := p.Explore(p.orders())
			if err != nil {
				t.Error(readable(err))
			}
			t.Logf("%v; %v", explored, time.Since(began).Round(time.Millisecond))
		})
	}
}

// An etcd that does not compare, and one without a change log, are found out.
func TestOrdersFindDisagreements(t *testing.T) {
	compare, since := regexp.MustCompile(`"compare":\[[^\]]*\],`), regexp.MustCompile(`"min_mod_revision":"\d+"`)
	for _, broken := range []struct {
		story   string
		through func(*hostsim.HTTPCall)
		says    string
	}{
		{"first turns", func(c *hostsim.HTTPCall) { c.Body = compare.ReplaceAll(c.Body, nil) }, ""},
		{"finish", func(c *hostsim.HTTPCall) { c.Body = since.ReplaceAll(c.Body, []byte(`"min_mod_revision":"1000000"`)) }, "B trusts a pin to "},
	} {
		for _, st := range stories {
			if st.name != broken.story {
				continue
			}
			p := st.start(t, broken.through)
			explored, err := p.Explore(p.orders())
			var failed *hostsim.OrderError
			if !errors.As(err, &failed) || !strings.Contains(failed.Err.Error(), broken.says) {
				t.Errorf("%s: %v, %s", st.name, explored, readable(err))
			}
		}
	}
}

var (
	bytesField  = regexp.MustCompile(`"(key|value|range_end)":"([A-Za-z0-9+/=]*)"`)
	replyHeader = regexp.MustCompile(`"header":\{[^}]*("revision":"\d+")[^}]*\},?`)
)

// readable is an error with the text of etcd's bytes.
func readable(err error) string {
	text := replyHeader.ReplaceAllString(fmt.Sprint(err), "$1 ")
	return bytesField.ReplaceAllStringFunc(text, func(field string) string {
		m := bytesField.FindStringSubmatch(field)
		b, _ := base64.StdEncoding.DecodeString(m[2]) // it is what etcd has taken
		return m[1] + "=" + strings.TrimPrefix(string(b), "/pinwheel/default")
	})
}
