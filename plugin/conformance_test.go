package plugin

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
	"github.com/pinwheel-proxy/pinwheel/policy/policytest"
)

// oneWorker finds the cases in which workers differ for as long as a second: turns
// without a pin rotate in each for itself, and each learns of another's failures
// at a tick.
var oneWorker = regexp.MustCompile(`table_full|> (fail|served)|> policy (least_loaded|power_of_two|round_robin|random)`)

// TestConformance plays the scripts of package policy on the shipped module with
// three workers: what the pure policy does, the gateway does. Cases in which turns
// overlap are played by two to five workers, each time in another order.
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
				orders := []int{3}
				if strings.Contains(c.Text, "> together") {
					orders = []int{3, 2, 4, 5}
				}
				for seed, workers := range orders {
					got, err := c.Run(&scriptTarget{
						t: t, workers: workers, seed: uint64(seed), oneWorker: oneWorker.MatchString(c.Text),
						failing: map[string]bool{}, running: map[string]*hostsim.Stream{},
					})
					if err != nil {
						t.Fatal(err)
					}
					if got != c.Text {
						t.Errorf("%d workers, seed %d: got\n%s\nwant\n%s", workers, seed, got, c.Text)
					}
				}
			})
		}
	}
}

// scriptTarget runs scripts on the module.
type scriptTarget struct {
	t         *testing.T
	workers   int
	seed      uint64 // of the order in which turns overlap
	oneWorker bool

	gw    *gateway
	clock *hostsim.VirtualClock
	order []string
	pools map[string]map[string]any

	next    int                        // the worker that had the last turn
	failing map[string]bool            // by address
	running map[string]*hostsim.Stream // by pool and session
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
	s.pools[pool] = map[string]any{"name": pool, "cluster": "cluster-" + pool, "policy": o.Policy, "replicas": members}
	var pools []any
	for _, name := range s.order {
		pools = append(pools, s.pools[name])
	}
	config := configJSON(map[string]any{
		"pools":           pools,
		"admin":           map[string]any{"secret": adminSecret},
		"consistent_hash": map[string]any{"load_factor": o.LoadFactor},
		"cache_aware": map[string]any{
			"cache_threshold": o.CacheThreshold, "balance_abs_threshold": o.BalanceAbs,
			"balance_rel_threshold": o.BalanceRel, "max_prefixes": o.MaxPrefixes,
		},
		"health": map[string]any{
			"failures": o.Failures, "cooldown": o.Cooldown.String(), "max_cooldown": o.MaxCooldown.String(),
		},
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
		Wasm: shipped, Build: "make wasm", Workers: s.workers,
		Config: `{"debug_headers":true,` + config + `}`,
		Adjust: func(c *hostsim.Config) { c.Clock, c.AllowOnHeadersStopIteration = s.clock, true },
	})}
}

// send sends a turn of the session, or a request without one, and the answer to it:
// of the replica it is sent to, or after a retry of the one at served. The stream is
// left running.
func (s *scriptTarget) send(worker int, pool, id, served string) (*hostsim.Stream, policytest.Decision) {
	stream := s.gw.Worker(worker).NewStream()
	stream.SetProperty("xds.cluster_name", []byte("cluster-"+pool))
	if step, err := stream.RequestHeaders(turnHeaders(id), true); err != nil || step.Flow != hostsim.Forward {
		s.t.Errorf("turn of %q: %v, %v", id, step.Flow, err)
	}
	address := replicaOf(stream)
	attempts := "1"
	if served == "" {
		served = address
	} else {
		attempts = "2"
	}
	if served != "" {
		stream.SetProperty("upstream.address", []byte(served))
		stream.SetProperty("response.code_details", []byte("via_upstream"))
	}
	status := "200"
	if s.failing[served] {
		status = "503"
	}
	answer := hostsim.Headers{{":status", status}, {"x-envoy-attempt-count", attempts}}
	if _, err := stream.ResponseHeaders(answer, true); err != nil {
		s.t.Error(err)
	}
	h := stream.Headers(hostsim.MapResponseHeaders)
	if told := h.Value("x-pinwheel-replica"); told != served {
		s.t.Errorf("served by %q, told the client %q", served, told)
	}
	return stream, policytest.Decision{Address: address, Reason: h.Value("x-pinwheel-reason")}
}

func (s *scriptTarget) do(worker int, pool, id string) policytest.Decision {
	return s.answered(worker, pool, id, "")
}

func (s *scriptTarget) answered(worker int, pool, id, served string) policytest.Decision {
	stream, d := s.send(worker, pool, id, served)
	if err := stream.End(hostsim.EndNormal); err != nil {
		s.t.Error(err)
	}
	return d
}

func (s *scriptTarget) worker() int {
	if s.oneWorker {
		return 0
	}
	s.next = (s.next + 1) % s.gw.Workers()
	return s.next
}

func (s *scriptTarget) Turn(pool, id string) policytest.Decision { return s.do(s.worker(), pool, id) }

// Prompt sends the prompt as that of a completion, in chunks.
func (s *scriptTarget) Prompt(pool, id, prompt string) policytest.Decision {
	body := `{"model":"m","stream":true,"prompt":` + string(gjson.AppendJSONString(nil, prompt)) + `}`
	r := chat(body[:100], body[100:])
	r.Cluster = "cluster-" + pool
	r.Headers.Set("x-session-id", id)
	got := s.gw.on(s.worker(), r)
	if got.Status != 200 || got.RequestBody != body {
		s.t.Errorf("turn of %q: %d, %d of %d bytes arrived", id, got.Status, len(got.RequestBody), len(body))
	}
	return policytest.Decision{Address: got.replica, Reason: got.reason}
}

func (s *scriptTarget) Served(pool, id, address string) policytest.Decision {
	return s.answered(s.worker(), pool, id, address)
}

// Begin leaves time for a tick, so that a later configuration knows what runs.
func (s *scriptTarget) Begin(pool, id string) policytest.Decision {
	stream, d := s.send(s.worker(), pool, id, "")
	s.running[pool+" "+id] = stream
	s.gw.Advance(2 * tick)
	return d
}

func (s *scriptTarget) End(pool, id string) {
	if err := s.running[pool+" "+id].End(hostsim.EndNormal); err != nil {
		s.t.Error(err)
	}
	s.gw.Advance(2 * tick)
}

func (s *scriptTarget) Answer(_, address string, well bool) { s.failing[address] = !well }

// Together deals the turns to all workers and interleaves these at every access
// to shared data.
func (s *scriptTarget) Together(pool string, ids []string) []policytest.Decision {
	decisions := make([]policytest.Decision, len(ids))
	workers := make([]func(*hostsim.Worker), s.gw.Workers())
	for w := range workers {
		workers[w] = func(*hostsim.Worker) {
			for i := w; i < len(ids); i += len(workers) {
				decisions[i] = s.do(w, pool, ids[i])
			}
		}
	}
	s.gw.Interleave(s.seed+uint64(len(ids)), workers...)
	return decisions
}

// Keyless always asks one worker: each has its own rotation.
func (s *scriptTarget) Keyless(pool string) policytest.Decision {
	return s.do(0, pool, "")
}

func (s *scriptTarget) Drain(pool, address string, drained bool) {
	action := map[bool]string{true: "drain", false: "undrain"}[drained]
	s.gw.ordered("POST", action+"?replica="+address+"&pool="+pool, 200)
}

// Reset leaves time for a tick, so that all workers know.
func (s *scriptTarget) Reset(pool string) {
	s.gw.ordered("POST", "reset?pool="+pool, 200)
	s.gw.Advance(2 * tick)
}

func (s *scriptTarget) Finish(pool, id string) {
	r := s.gw.do(hosttest.Request{Method: "POST", Path: "/finish_session?session_id=" + id, Cluster: "cluster-" + pool})
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
