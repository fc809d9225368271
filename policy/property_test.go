package policy_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

var steps = flag.Int("steps", 1_000_000, "random steps of all policies together against the oracle")

// variants are the rules that histories are played under.
var variants = func() (all []rules) {
	health := policy.HealthRule{Failures: 2, Cooldown: 100, MaxCooldown: 350}
	options := policy.Options{LoadFactor: 1.25, Threshold: 0.3, BalanceAbs: 2, BalanceRel: 1.5}
	for _, name := range policy.Names() {
		all = append(all, rules{policy: name, options: options, health: health, grace: 300})
	}
	all[0].grace, all[0].health = 0, policy.HealthRule{}
	all = append(all, rules{policy: "consistent_hash", health: health})
	all = append(all, rules{policy: "sticky_least_loaded", health: policy.HealthRule{Failures: 1, Cooldown: 50, MaxCooldown: 50}, grace: 1})
	return all
}()

// TestPoolAgainstOracle compares every decision of a million steps, in histories
// of 400, with the oracle's, and checks the invariants after each step.
func TestPoolAgainstOracle(t *testing.T) {
	const length = 400
	for v, rules := range variants {
		t.Run(fmt.Sprint(v, " ", rules.policy), func(t *testing.T) {
			seen := map[policy.Decision]int{}
			for n := range *steps / length / len(variants) {
				seed := uint64(v<<32 + n)
				steps := randomHistory(seed, length)
				if err := replay(rules, steps, seen); err != nil {
					steps, err = shortest(rules, steps, err)
					t.Fatalf("seed %d: %v\nafter:\n%s", seed, err, lines(steps))
				}
			}
			reached(t, rules, seen)
		})
	}
}

// reached fails if the generator never gets somewhere: that proves nothing then.
func reached(t *testing.T, rules rules, seen map[policy.Decision]int) {
	want := []policy.Reason{policy.Placed, policy.Keyless, policy.NoReplica}
	if (&oracle{rules: rules}).pinning() {
		want = append(want, policy.Pinned, policy.FailoverUnhealthy, policy.FailoverRemoved, policy.Expired, policy.TableFull)
	}
	for _, reason := range want {
		for _, panicked := range []bool{false, true} {
			n := 0
			for d, count := range seen {
				if d.Reason == reason && d.Panic == panicked {
					n += count
				}
			}
			// Nobody fails over for health while all are used, and a full table is
			// rare enough.
			impossible := panicked && (reason == policy.FailoverUnhealthy || reason == policy.NoReplica || reason == policy.TableFull)
			if n < 20 && !impossible && *steps >= 500_000 {
				t.Errorf("only %d decisions were %v, panic %v", n, reason, panicked)
			}
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
func shortest(rules rules, steps []step, err error) ([]step, error) {
	for size := len(steps) / 2; size > 0; {
		removed := false
		for from := 0; from+size <= len(steps); {
			less := slices.Delete(slices.Clone(steps), from, from+size)
			if e := replay(rules, less, map[policy.Decision]int{}); e != nil {
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
func replay(rules rules, steps []step, seen map[policy.Decision]int) error {
	rules.timeout, rules.capacity = propertyTimeout, propertyCapacity
	chosen, err := policy.New(rules.policy, rules.options)
	if err != nil {
		return err
	}
	x := newPair(rules, chosen)
	w := watch{pool: x.pool, turns: map[string]turn{}}
	for _, s := range steps {
		got, want := x.do(s)
		if got != want {
			return fmt.Errorf("%v: got %v, the oracle says %v", s, got, want)
		} else if d, ok := got.(policy.Decision); ok {
			seen[policy.Decision{Reason: d.Reason, Panic: d.Panic}]++
			if s.op == "turn" && chosen.Pins() {
				if err := w.unmoved(s.name, d, x.now); err != nil {
					return err
				}
			}
		}
		switch {
		case s.op == "finish", s.op == "follow" && got == true:
			delete(w.turns, s.name)
		case s.op == "reset":
			clear(w.turns)
		}
		if err := invariants(x.pool, x.oracle); err != nil {
			return fmt.Errorf("%v: %w", s, err)
		}
	}
	return nil
}

// pair is a pool and the oracle that lives through the same.
type pair struct {
	pool   *policy.Pool
	oracle *oracle
	now    int64
}

func newPair(rules rules, chosen policy.Policy) *pair {
	return &pair{
		pool:   &policy.Pool{Policy: chosen, Prefixes: policy.NewPrefixIndex(1 << 14), Timeout: propertyTimeout, MaxSessions: propertyCapacity},
		oracle: &oracle{rules: rules, prompts: map[string]oracleHolders{}},
	}
}

// do takes one step and returns what both say.
func (x *pair) do(s step) (got, want any) {
	p, o, now := x.pool, x.oracle, x.now
	o.random = mixed(p.Seed+0x9e3779b97f4a7c15, 0)
	switch s.op {
	case "turn":
		text := prompt(s.blocks)
		return p.Turn(key(s.name), promptOf(text), now), o.turn(s.name, text, now)
	case "keyless":
		return p.Unrecorded(policy.Key{}, policy.Keyless, now), o.unrecorded("", policy.Keyless, now)
	case "finish":
		return p.Finish(key(s.name)), o.finish(s.name)
	case "follow":
		id := idOf(&p.Replicas, s.to)
		return p.Follow(key(s.name), id, now), o.follow(s.name, id, now)
	case "advance":
		x.now += s.ms
	case "sweep":
		return p.Sweep(now), o.sweep(now)
	case "forget":
		p.Forget(now, o.grace)
		o.forget(now)
	case "apply":
		p.Apply(s.members, now, o.grace)
		o.apply(s.members, now)
	case "reset":
		return p.Reset(now), o.reset(now)
	case "fail", "ok", "begin", "end", "drain", "undrain":
		if id := idOf(&p.Replicas, s.name); id > 0 {
			x.event(s, id)
		}
	}
	return nil, nil
}

// event is something that a replica did.
func (x *pair) event(s step, id uint32) {
	switch o := x.oracle; s.op {
	case "fail":
		if x.pool.Fail(id, x.now-s.ms, x.now, o.health); o.health.Failures > 0 {
			o.fail(id, x.now-s.ms, x.now)
		}
	case "ok":
		x.pool.Succeed(id, x.now-s.ms)
		o.succeed(id, x.now-s.ms)
	case "drain", "undrain":
		x.pool.Drain(id, s.op == "drain")
		o.drain(id, s.op == "drain")
	case "begin":
		x.pool.Begin(id)
		o.running = append(o.running, id)
	case "end":
		x.pool.End(id)
		if i := slices.Index(o.running, id); i >= 0 {
			o.running = slices.Delete(o.running, i, i+1)
		}
	}
}

// idOf returns the id of the member with that address, 0 if there is none.
func idOf(r *policy.Replicas, address string) uint32 {
	for _, c := range r.List {
		if c.Address == address && c.State != policy.Removed {
			return c.ID
		}
	}
	return 0
}

// promptOf reads a prompt in two pieces.
func promptOf(text string) *policy.Prompt {
	p := &policy.Prompt{}
	p.Reset(7)
	p.Write([]byte(text[:len(text)/3]))
	p.Write([]byte(text[len(text)/3:]))
	return p
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
		if c.ID != want.id || c.Address != want.member.Address || (c.State == policy.Removed) != want.gone || c.Joining != want.joining ||
			c.Drained != want.drained || c.Void != want.void || c.Health.Cooldown != want.length || c.Health.Cooling() && c.Health.Until != want.ready() || int(c.Health.Failures) != want.failures {
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
	serves := i >= 0 && (w.pool.List[i].Condition() == policy.Active || w.pool.List[i].Condition() == policy.Draining)
	if serves && (d.Reason != policy.Pinned || d.Replica != last.replica) {
		return fmt.Errorf("%s went from %d to %d, %v, though it is well", session, last.replica, d.Replica, d.Reason)
	}
	return nil
}
