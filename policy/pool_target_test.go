package policy_test

import (
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/policy"
	"github.com/pinwheel-proxy/pinwheel/policy/policytest"
)

// poolTarget runs scripts on the pure policy.
type poolTarget struct {
	t       *testing.T
	options policytest.Options
	pools   map[string]*policy.Pool
	now     int64
	failing map[string]bool   // by address
	running map[string]uint32 // replica by pool and session
}

func newPoolTarget(t *testing.T) *poolTarget {
	return &poolTarget{t: t, pools: map[string]*policy.Pool{}, failing: map[string]bool{}, running: map[string]uint32{}}
}

var states = map[string]policy.State{
	"active": policy.Active, "draining": policy.Draining, "unhealthy": policy.Unhealthy,
}

func (p *poolTarget) Configure(pool string, o policytest.Options, replicas []policytest.Replica) {
	at := p.pools[pool]
	if at == nil {
		at = &policy.Pool{Prefixes: policy.NewPrefixIndex(o.MaxPrefixes)}
		p.pools[pool] = at
	}
	var members []policy.Member
	for _, r := range replicas {
		state, ok := states[r.State]
		if !ok {
			p.t.Fatalf("no state %q", r.State)
		}
		members = append(members, policy.Member{Address: r.Address, Weight: r.Weight, State: state})
	}
	chosen, err := policy.New(o.Policy, policy.Options{
		LoadFactor: o.LoadFactor, Threshold: o.CacheThreshold, BalanceAbs: uint32(o.BalanceAbs), BalanceRel: o.BalanceRel,
	})
	if err != nil {
		p.t.Fatal(err)
	}
	p.options, at.Policy, at.Timeout, at.MaxSessions = o, chosen, o.Timeout.Milliseconds(), o.MaxSessions
	at.Apply(members, p.now, 0)
	at.Forget(p.now, 0)
}

func (p *poolTarget) Turn(pool, id string) policytest.Decision {
	return p.answered(pool, p.turn(pool, id, nil))
}

func (p *poolTarget) turn(pool, id string, prompt *policy.Prompt) policy.Decision {
	at := p.pools[pool]
	if len(id) > p.options.MaxIDBytes {
		return at.Unrecorded(policy.Key{}, policy.Oversized, p.now)
	}
	return at.Turn(key(id), prompt, p.now)
}

func (p *poolTarget) Prompt(pool, id, prompt string) policytest.Decision {
	return p.answered(pool, p.turn(pool, id, promptOf(prompt)))
}

func (p *poolTarget) Served(pool, id, address string) policytest.Decision {
	at, d := p.pools[pool], p.turn(pool, id, nil)
	served := idOf(&at.Replicas, address)
	at.Fail(d.Replica, p.now, p.now, p.rule())
	at.Succeed(served, p.now)
	at.Follow(key(id), served, p.now)
	return policytest.Decision{Address: at.List[at.Index(d.Replica)].Address, Reason: d.Reason.String()}
}

func (p *poolTarget) rule() policy.HealthRule {
	return policy.HealthRule{
		Failures: uint16(p.options.Failures),
		Cooldown: p.options.Cooldown.Milliseconds(), MaxCooldown: p.options.MaxCooldown.Milliseconds(),
	}
}

func (p *poolTarget) Begin(pool, id string) policytest.Decision {
	d := p.turn(pool, id, nil)
	p.running[pool+" "+id] = d.Replica
	p.pools[pool].Begin(d.Replica)
	return p.answered(pool, d)
}

func (p *poolTarget) End(pool, id string) { p.pools[pool].End(p.running[pool+" "+id]) }

func (p *poolTarget) Answer(_, address string, well bool) { p.failing[address] = !well }

// answered tells the pool how the turn went and the script where.
func (p *poolTarget) answered(pool string, d policy.Decision) policytest.Decision {
	at, out := p.pools[pool], policytest.Decision{Reason: d.Reason.String()}
	i := at.Replicas.Index(d.Replica)
	if i < 0 {
		return out
	}
	out.Address = at.List[i].Address
	if p.failing[out.Address] {
		at.Fail(d.Replica, p.now, p.now, p.rule())
	} else {
		at.Succeed(d.Replica, p.now)
	}
	return out
}

func (p *poolTarget) Together(pool string, ids []string) (ds []policytest.Decision) {
	for _, id := range ids {
		ds = append(ds, p.Turn(pool, id))
	}
	return ds
}

func (p *poolTarget) Keyless(pool string) policytest.Decision {
	return p.answered(pool, p.pools[pool].Unrecorded(policy.Key{}, policy.Keyless, p.now))
}

func (p *poolTarget) Drain(pool, address string, drained bool) {
	at := p.pools[pool]
	at.Drain(idOf(&at.Replicas, address), drained)
}

func (p *poolTarget) Reset(pool string) { p.pools[pool].Reset(p.now) }

func (p *poolTarget) Finish(pool, id string) { p.pools[pool].Finish(key(id)) }

func (p *poolTarget) Advance(d time.Duration) { p.now += d.Milliseconds() }

func (p *poolTarget) Sweep() {
	for _, at := range p.pools {
		at.Sweep(p.now)
		at.Forget(p.now, 0)
	}
}

func (p *poolTarget) Open(pool string, addresses []string) (counts []int) {
	for _, address := range addresses {
		n := -1
		for _, c := range p.pools[pool].List {
			if c.Address == address && c.State != policy.Removed {
				n = int(c.Open)
			}
		}
		counts = append(counts, n)
	}
	return counts
}

// key is the key of an id under a secret of zeros.
func key(id string) policy.Key { return policy.NewKey(policy.Secret{}, []byte(id)) }
