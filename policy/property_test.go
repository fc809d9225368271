package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// step is one thing that happens to a pool; a history is data, so that a failing
// one can be shortened.
type step struct {
	op      string // turn keyless finish advance sweep forget apply
	session string
	ms      int64
	members []policy.Member
}

func (s step) String() string {
	switch s.op {
	case "advance":
		return fmt.Sprintf("advance %d", s.ms)
	case "apply":
		var ms []string
		for _, m := range s.members {
			ms = append(ms, fmt.Sprintf("%s:%v*%d", m.Address, m.State, m.Weight))
		}
		return "apply " + strings.Join(ms, " ")
	}
	return strings.TrimSpace(s.op + " " + s.session)
}

const (
	propertyTimeout  = 1600
	propertySessions = 24
	propertyCapacity = 16
)

func randomStep(r *rand.Rand, members []policy.Member) step {
	session := fmt.Sprint("s", r.IntN(propertySessions))
	switch n := r.IntN(100); {
	case n < 60:
		return step{op: "turn", session: session}
	case n < 66:
		return step{op: "keyless"}
	case n < 78:
		return step{op: "finish", session: session}
	case n < 86:
		// Around a sixteenth of the timeout, around the timeout, and between.
		around := []int64{1, 99, 100, 101, 700, 1599, 1600}
		return step{op: "advance", ms: around[r.IntN(len(around))]}
	case n < 89:
		return step{op: "sweep"}
	case n < 92:
		return step{op: "forget"}
	}
	return step{op: "apply", members: changed(r, members)}
}

// changed returns the members after one change: a replica comes, goes, or gets
// another state or weight; the list is shuffled.
func changed(r *rand.Rand, members []policy.Member) []policy.Member {
	ms := slices.Clone(members)
	name := string(rune('a' + r.IntN(7)))
	i := slices.IndexFunc(ms, func(m policy.Member) bool { return m.Address == name })
	switch {
	case i < 0:
		ms = append(ms, policy.Member{Address: name, Weight: 1 + uint32(r.IntN(3))})
	case r.IntN(3) == 0:
		ms = slices.Delete(ms, i, i+1)
	case r.IntN(4) == 0:
		ms[i].Weight = 1 + uint32(r.IntN(3))
	default:
		ms[i].State = policy.State(r.IntN(3))
	}
	r.Shuffle(len(ms), func(i, j int) { ms[i], ms[j] = ms[j], ms[i] })
	return ms
}

func randomHistory(seed uint64, n int) []step {
	r := rand.New(rand.NewPCG(seed, 0))
	var members []policy.Member
	var steps []step
	for range 1 + r.IntN(5) {
		members = changed(r, members)
	}
	steps = append(steps, step{op: "apply", members: members})
	for len(steps) < n {
		s := randomStep(r, members)
		if s.op == "apply" {
			members = s.members
		}
		steps = append(steps, s)
	}
	return steps
}

// TestPoolAgainstOracle compares every decision of 200,000 steps, in histories
// of 400, with the oracle's, and checks the invariants after each step.
func TestPoolAgainstOracle(t *testing.T) {
	const histories, length = 500, 400
	reasons := map[policy.Reason]int{}
	for seed := range uint64(histories) {
		steps := randomHistory(seed, length)
		if err := replay(steps, reasons); err != nil {
			steps, err = shortest(steps, err)
			t.Fatalf("seed %d: %v\nafter:\n%s", seed, err, lines(steps))
		}
	}
	// A generator that never gets somewhere proves nothing about it.
	for _, reason := range []policy.Reason{
		policy.Pinned, policy.Placed, policy.FailoverUnhealthy, policy.FailoverRemoved,
		policy.Expired, policy.Keyless, policy.TableFull, policy.NoReplica,
	} {
		if reasons[reason] < 50 {
			t.Errorf("only %d decisions were %v", reasons[reason], reason)
		}
	}
}

func lines(steps []step) string {
	var out strings.Builder
	for _, s := range steps {
		fmt.Fprintln(&out, s)
	}
	return out.String()
}

// shortest removes steps while what is left still fails.
func shortest(steps []step, err error) ([]step, error) {
	for size := len(steps) / 2; size > 0; {
		removed := false
		for from := 0; from+size <= len(steps); {
			less := slices.Delete(slices.Clone(steps), from, from+size)
			if e := replay(less, map[policy.Reason]int{}); e != nil {
				steps, err, removed = less, e, true
			} else {
				from += size
			}
		}
		if !removed {
			size /= 2
		}
	}
	return steps, err
}

// replay drives a pool and the oracle through the steps.
func replay(steps []step, reasons map[policy.Reason]int) error {
	p := &policy.Pool{Timeout: propertyTimeout, MaxSessions: propertyCapacity}
	o := &oracle{timeout: propertyTimeout, capacity: propertyCapacity}
	w := watch{pool: p, turns: map[string]turn{}}
	var now int64
	for _, s := range steps {
		var got, want any
		switch s.op {
		case "turn":
			d := p.Turn(key(s.session), now)
			reasons[d.Reason]++
			if err := w.unmoved(s.session, d, now); err != nil {
				return err
			}
			got, want = d, o.turn(s.session, now)
		case "keyless":
			d := p.Unrecorded(policy.Keyless)
			reasons[d.Reason]++
			got, want = d, o.unrecorded(policy.Keyless)
		case "finish":
			got, want = p.Finish(key(s.session)), o.finish(s.session)
			delete(w.turns, s.session)
		case "advance":
			now += s.ms
		case "sweep":
			got, want = p.Sweep(now), o.sweep(now)
		case "forget":
			p.Forget()
			o.forget()
		case "apply":
			p.Apply(s.members)
			o.apply(s.members)
		}
		if got != want {
			return fmt.Errorf("%v: got %v, the oracle says %v", s, got, want)
		}
		if err := invariants(p, o); err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
	}
	return nil
}

func list(p *policy.Pool) string {
	var out strings.Builder
	for _, c := range p.List {
		fmt.Fprint(&out, c.ID, "=", c.Address, " ")
	}
	return out.String()
}

// invariants checks that counts equal pins and that the list is what its
// documentation says.
func invariants(p *policy.Pool, o *oracle) error {
	if p.Sessions() != len(o.pins) || p.Sessions() > propertyCapacity || p.Open() != uint64(len(o.pins)) {
		return fmt.Errorf("%d sessions, %d open, %d pins", p.Sessions(), p.Open(), len(o.pins))
	}
	if len(p.List) != len(o.replicas) {
		return fmt.Errorf("%d replicas, want %d", len(p.List), len(o.replicas))
	}
	taken := map[string]bool{}
	for i, c := range p.List {
		want := o.replicas[i]
		if c.ID != want.id || c.Address != want.member.Address || (c.State == policy.Removed) != want.gone || c.Joining != want.joining {
			return fmt.Errorf("replica %d is %+v, want %+v", i, c, want)
		}
		if int64(c.Open) != o.count(c.ID) {
			return fmt.Errorf("replica %d has %d open sessions and %d pins", c.ID, c.Open, o.count(c.ID))
		}
		if i > 0 && c.ID <= p.List[i-1].ID || c.ID >= p.NextID {
			return fmt.Errorf("ids are not ascending below %d: %s", p.NextID, list(p))
		}
		if c.State != policy.Removed && taken[c.Address] {
			return fmt.Errorf("%s is there twice: %s", c.Address, list(p))
		}
		taken[c.Address] = taken[c.Address] || c.State != policy.Removed
	}
	return nil
}

// watch holds, without the oracle, that no session moves without a reason.
type watch struct {
	pool  *policy.Pool
	turns map[string]turn
}

type turn struct {
	replica uint32
	at      int64
}

func (w watch) unmoved(session string, d policy.Decision, now int64) error {
	last, known := w.turns[session]
	recorded := d.Reason <= policy.Expired
	if recorded {
		w.turns[session] = turn{d.Replica, now}
	}
	if !known || now-last.at >= propertyTimeout*15/16 {
		return nil
	}
	i := w.pool.Index(last.replica)
	serves := i >= 0 && (w.pool.List[i].State == policy.Active || w.pool.List[i].State == policy.Draining)
	if serves && (d.Reason != policy.Pinned || d.Replica != last.replica) {
		return fmt.Errorf("%s went from %d to %d, %v, though it is well", session, last.replica, d.Replica, d.Reason)
	}
	return nil
}
