package policy_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/policy"
	"github.com/pinwheel-proxy/pinwheel/policy/policytest"
)

var rewrite = flag.Bool("rewrite", false, "record the scripts' output anew")

// scripts are the recorded conversations, with their number of cases: a script
// that is lost or cut short must not pass for one that holds.
var scripts = map[string]int{
	"balance.txt": 6, "expiry.txt": 6, "membership.txt": 8, "no_replica.txt": 2,
	"release.txt": 5, "sticky.txt": 8, "unrecorded.txt": 6,
}

// TestConformance plays the scripts on the pure policy. After a wanted change of
// behaviour run it with -rewrite and read what differs.
func TestConformance(t *testing.T) {
	for file, n := range scripts {
		t.Run(strings.TrimSuffix(file, ".txt"), func(t *testing.T) {
			path := filepath.Join("testdata", file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			header, cases, err := policytest.Parse(string(text))
			if err != nil || len(cases) != n {
				t.Fatalf("%d cases, want %d (%v)", len(cases), n, err)
			}
			for i := range cases {
				play(t, &cases[i])
			}
			if *rewrite {
				err = os.WriteFile(path, []byte(policytest.Format(header, cases)), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	if files, _ := filepath.Glob("testdata/*.txt"); len(files) != len(scripts) {
		t.Errorf("testdata has %d scripts, this test knows %d", len(files), len(scripts))
	}
}

func play(t *testing.T, c *policytest.Case) {
	t.Run(c.Name, func(t *testing.T) {
		target := &poolTarget{t: t, pools: map[string]*policy.Pool{}}
		got, err := c.Run(target)
		if err != nil {
			t.Fatal(err)
		}
		if *rewrite {
			c.Text = got
		} else if got != c.Text {
			t.Errorf("got\n%s\nwant\n%s", got, c.Text)
		}
	})
}

// poolTarget runs scripts on the pure policy.
type poolTarget struct {
	t       *testing.T
	options policytest.Options
	pools   map[string]*policy.Pool
	now     int64
}

var states = map[string]policy.State{
	"active": policy.Active, "draining": policy.Draining, "unhealthy": policy.Unhealthy,
}

func (p *poolTarget) Configure(pool string, o policytest.Options, replicas []policytest.Replica) {
	at := p.pools[pool]
	if at == nil {
		at = &policy.Pool{}
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
	p.options, at.Timeout, at.MaxSessions = o, o.Timeout.Milliseconds(), o.MaxSessions
	at.Apply(members, 0, 0)
	at.Forget(0, 0)
}

func (p *poolTarget) Turn(pool, id string) policytest.Decision {
	at := p.pools[pool]
	if len(id) > p.options.MaxIDBytes {
		return p.decision(at, at.Unrecorded(policy.Key{}, policy.Oversized, 0))
	}
	return p.decision(at, at.Turn(key(id), nil, p.now))
}

func (p *poolTarget) Together(pool string, ids []string) (ds []policytest.Decision) {
	for _, id := range ids {
		ds = append(ds, p.Turn(pool, id))
	}
	return ds
}

func (p *poolTarget) Keyless(pool string) policytest.Decision {
	return p.decision(p.pools[pool], p.pools[pool].Unrecorded(policy.Key{}, policy.Keyless, 0))
}

func (p *poolTarget) Finish(pool, id string) { p.pools[pool].Finish(key(id)) }

func (p *poolTarget) Advance(d time.Duration) { p.now += d.Milliseconds() }

func (p *poolTarget) Sweep() {
	for _, at := range p.pools {
		at.Sweep(p.now)
		at.Forget(0, 0)
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

func (p *poolTarget) decision(at *policy.Pool, d policy.Decision) policytest.Decision {
	out := policytest.Decision{Reason: d.Reason.String()}
	if i := at.Index(d.Replica); i >= 0 {
		out.Address = at.List[i].Address
	}
	return out
}

// key is the key of an id under a secret of zeros.
func key(id string) policy.Key { return policy.NewKey(policy.Secret{}, []byte(id)) }
