package plugin

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
	"github.com/pinwheel-proxy/pinwheel/policy/policytest"
)

// TestConformance plays the scripts of package policy on the shipped module with
// three workers: what the pure policy does, the gateway does.
func TestConformance(t *testing.T) {
	files, err := filepath.Glob("../policy/testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scripts in ../policy/testdata (%v)", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		_, cases, err := policytest.Parse(string(text))
		if err != nil || len(cases) == 0 {
			t.Fatalf("%s: %d cases, %v", file, len(cases), err)
		}
		for _, c := range cases {
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+c.Name, func(t *testing.T) {
				// Requests without a pin rotate in each worker for itself.
				got, err := c.Run(&scriptTarget{t: t, oneWorker: strings.Contains(c.Text, "table_full")})
				if err != nil {
					t.Fatal(err)
				}
				if got != c.Text {
					t.Errorf("got\n%s\nwant\n%s", got, c.Text)
				}
			})
		}
	}
}

// scriptTarget runs scripts on the module.
type scriptTarget struct {
	t         *testing.T
	oneWorker bool

	gw    *gateway
	clock *hostsim.VirtualClock
	order []string
	pools map[string]map[string]any
}

func (s *scriptTarget) Configure(pool string, o policytest.Options, replicas []policytest.Replica) {
	members := []any{}
	for _, r := range replicas {
		members = append(members, map[string]any{"address": r.Address, "weight": r.Weight, "state": r.State})
	}
	if s.pools == nil {
		s.pools = map[string]map[string]any{}
	}
	if s.pools[pool] == nil {
		s.order = append(s.order, pool)
	}
	s.pools[pool] = map[string]any{"name": pool, "cluster": "cluster-" + pool, "replicas": members}
	var pools []any
	for _, name := range s.order {
		pools = append(pools, s.pools[name])
	}
	config := configJSON(map[string]any{
		"pools": pools,
		"session": map[string]any{
			"idle_timeout": o.Timeout.String(), "max_sessions": o.MaxSessions, "max_id_bytes": o.MaxIDBytes,
		},
	})
	if s.gw != nil {
		if err := s.gw.reconfigure(config); err != nil {
			s.t.Fatal(err)
		}
		return
	}
	s.clock = hostsim.NewVirtualClock()
	s.gw = &gateway{t: s.t, Host: hosttest.New(s.t, hosttest.Options{
		Wasm: shipped, Build: "make wasm", Workers: 3,
		Config: `{"debug_headers":true,` + config + `}`,
		Adjust: func(c *hostsim.Config) { c.Clock = s.clock },
	})}
}

func (s *scriptTarget) request(pool string, r hosttest.Request) hosttest.Request {
	r.Cluster = "cluster-" + pool
	return r
}

func decisionOf(r result) policytest.Decision {
	return policytest.Decision{Address: r.replica, Reason: r.reason}
}

func (s *scriptTarget) Turn(pool, id string) policytest.Decision {
	if s.oneWorker {
		return decisionOf(s.gw.on(0, s.request(pool, turnOf(id))))
	}
	return decisionOf(s.gw.do(s.request(pool, turnOf(id))))
}

// The module has one policy and no health yet: scripts that need more fail here.

func (s *scriptTarget) Prompt(pool, id, _ string) policytest.Decision {
	s.t.Fatalf("a prompt of %s in %s: no cache_aware yet", id, pool)
	return policytest.Decision{}
}

func (s *scriptTarget) Begin(pool, id string) policytest.Decision {
	s.t.Fatalf("a running turn of %s in %s: no least_loaded yet", id, pool)
	return policytest.Decision{}
}

func (s *scriptTarget) End(pool, id string) { s.t.Fatalf("the end of a turn of %s in %s", id, pool) }

func (s *scriptTarget) Answer(pool, address string, _ bool) {
	s.t.Fatalf("answers of %s in %s: no health yet", address, pool)
}

// Together deals the turns to all workers and interleaves these at every access
// to shared data.
func (s *scriptTarget) Together(pool string, ids []string) []policytest.Decision {
	decisions := make([]policytest.Decision, len(ids))
	workers := make([]func(*hostsim.Worker), s.gw.Workers())
	for w := range workers {
		workers[w] = func(*hostsim.Worker) {
			for i := w; i < len(ids); i += len(workers) {
				decisions[i] = decisionOf(s.gw.on(w, s.request(pool, turnOf(ids[i]))))
			}
		}
	}
	s.gw.Interleave(uint64(len(ids)), workers...)
	return decisions
}

// Keyless always asks one worker: each has its own rotation.
func (s *scriptTarget) Keyless(pool string) policytest.Decision {
	return decisionOf(s.gw.on(0, s.request(pool, hosttest.Request{Path: "/v1/models"})))
}

func (s *scriptTarget) Finish(pool, id string) {
	r := s.gw.do(s.request(pool, hosttest.Request{Method: "POST", Path: "/finish_session?session_id=" + id}))
	if r.Status != 200 {
		s.t.Errorf("release of %s: %d %s", id, r.Status, r.ResponseBody)
	}
}

func (s *scriptTarget) Advance(d time.Duration) { s.clock.Advance(d) }

func (s *scriptTarget) Sweep() { s.gw.Advance(40 * time.Second) }

func (s *scriptTarget) Open(pool string, addresses []string) (counts []int) {
	open := map[string]int{}
	r := s.gw.record(pool)
	for i := range r.List {
		if c := &r.List[i]; c.State.String() != "removed" {
			open[c.Address] = int(c.Open)
		}
	}
	for _, a := range addresses {
		n, ok := open[a]
		if !ok {
			n = -1
		}
		counts = append(counts, n)
	}
	return counts
}
