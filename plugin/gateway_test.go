package plugin

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// shipped is the module that users load; make wasm builds it.
const shipped = "../dist/pinwheel.wasm"

// gateway is the shipped module in a simulated gateway.
type gateway struct {
	*hosttest.Host
	t testing.TB
	// next is the worker that gets the next request.
	next int
}

const twoReplicas = `"replicas":["10.0.0.1:8000","10.0.0.2:8000"]`
const threeReplicas = `"replicas":["10.0.0.1:8000","10.0.0.2:8000","10.0.0.3:8000"]`

// startGateway runs the module with debug headers on and the rest of the
// configuration as given.
func startGateway(t testing.TB, workers int, config string) *gateway {
	t.Helper()
	return startModule(t, shipped, workers, config)
}

func startModule(t testing.TB, wasm string, workers int, config string) *gateway {
	t.Helper()
	return startWith(t, hosttest.Options{Wasm: wasm, Workers: workers}, config)
}

// startWith fills in the options that all tests share.
func startWith(t testing.TB, o hosttest.Options, config string) *gateway {
	t.Helper()
	if o.Wasm == "" {
		o.Wasm, o.Build = shipped, "make wasm"
	}
	o.Config = `{"debug_headers":true,` + config + `}`
	if o.Adjust == nil {
		o.Adjust = func(c *hostsim.Config) { c.LogLevel = hostsim.LogInfo }
	}
	return &gateway{Host: hosttest.New(t, o), t: t}
}

// outcome of one request, as the client and the gateway see it.
type result struct {
	hosttest.Result
	target  string // the override header, empty if there is none
	replica string // the first host of it
	reason  string
}

// do sends a request to the workers in turn.
func (g *gateway) do(r hosttest.Request) result {
	g.t.Helper()
	g.next = (g.next + 1) % g.Workers()
	return g.on(g.next, r)
}

func (g *gateway) on(worker int, r hosttest.Request) result {
	g.t.Helper()
	res := result{Result: g.Do(worker, r)}
	res.target = res.Request.Value("x-gateway-destination-endpoint")
	res.replica, _, _ = strings.Cut(res.target, ",")
	res.reason = res.Response.Value("x-pinwheel-reason")
	if res.replica != res.Response.Value("x-pinwheel-replica") {
		g.t.Errorf("sent to %q, told the client %q", res.replica, res.Response.Value("x-pinwheel-replica"))
	}
	return res
}

// turn sends a turn of the session.
func (g *gateway) turn(id string, headers ...[2]string) result {
	g.t.Helper()
	return g.do(turnOf(id, headers...))
}

func turnOf(id string, headers ...[2]string) hosttest.Request {
	return hosttest.Request{Path: "/v1/chat/completions", Headers: append(hostsim.Headers{{"x-session-id", id}}, headers...), Body: "{}"}
}

func (g *gateway) keyless(headers ...[2]string) result {
	g.t.Helper()
	return g.do(hosttest.Request{Path: "/v1/chat/completions", Headers: headers, Body: "{}"})
}

// release sends POST /finish_session for the id, not escaped.
func (g *gateway) release(id string) result {
	g.t.Helper()
	return g.do(hosttest.Request{Method: "POST", Path: "/finish_session?session_id=" + id})
}

// record reads a pool's record from shared data, as no metric tells it: at once.
func (g *gateway) record(pool string) record {
	g.t.Helper()
	value, _, ok := g.SharedData().Get(keyRoot + pool + "/replicas")
	if !ok {
		g.t.Fatalf("pool %s has no record", pool)
	}
	var r record
	if err := r.decode(value); err != nil {
		g.t.Fatal(err)
	}
	return r
}

// sessions returns the number of open sessions of a pool.
func (g *gateway) sessions(pool string) int {
	g.t.Helper()
	r := g.record(pool)
	return int(r.Open())
}

// open returns the open sessions of the default pool by address.
func (g *gateway) open() map[string]int {
	g.t.Helper()
	counts := map[string]int{}
	for _, c := range g.record("default").List {
		if c.State != policy.Removed {
			counts[c.Address] = int(c.Open)
		}
	}
	return counts
}

// mustOpen fails unless the replicas' open sessions are these, in the order of
// the configuration.
func (g *gateway) mustOpen(want ...int) {
	g.t.Helper()
	var got []int
	for _, c := range g.record("default").List {
		if c.State != policy.Removed {
			got = append(got, int(c.Open))
		}
	}
	if fmt.Sprint(got) != fmt.Sprint(want) {
		g.t.Errorf("open sessions %v, want %v", got, want)
	}
}

// tick is the longest time between two ticks.
const tick = time.Second

// begin sends the headers of a turn, or of a keyless request, and leaves it
// running.
func (g *gateway) begin(worker int, id string) *hostsim.Stream {
	g.t.Helper()
	s := g.Worker(worker).NewStream()
	if step, err := s.RequestHeaders(turnHeaders(id), true); err != nil || step.Flow != hostsim.Forward {
		g.t.Fatalf("turn of %q: %v, %v", id, step.Flow, err)
	}
	return s
}

// turnHeaders are the headers of a turn of the session; "" is none.
func turnHeaders(id string) hostsim.Headers {
	h := hostsim.Headers{{":method", "POST"}, {":scheme", "http"}, {":authority", "example.com"}, {":path", "/v1/chat/completions"}}
	if id != "" {
		h.Add("x-session-id", id)
	}
	return h
}

func (g *gateway) end(s *hostsim.Stream, reason hostsim.EndReason) {
	g.t.Helper()
	if err := s.End(reason); err != nil {
		g.t.Error(err)
	}
}

// replicaOf returns the first host that a running request was sent to.
func replicaOf(s *hostsim.Stream) string {
	first, _, _ := strings.Cut(s.Headers(hostsim.MapRequestHeaders).Value("x-gateway-destination-endpoint"), ",")
	return first
}

// running returns the running requests of the default pool by address, as the
// live workers have published them at their last tick.
func (g *gateway) running() map[string]int {
	g.t.Helper()
	names := map[uint32]string{}
	for _, c := range g.record("default").List {
		names[c.ID] = c.Address
	}
	counts := map[string]int{}
	for slot := 0; ; slot++ {
		value, _, ok := g.SharedData().Get(fmt.Sprintf(keyRoot+"default/w/%d", slot))
		if !ok {
			return counts
		}
		_, beat, ok := slotOwner(value)
		if !ok {
			g.t.Fatalf("slot %d holds % x", slot, value)
		}
		if g.milliseconds()-beat >= staleAfter {
			continue
		}
		for b := value[slotHeader:]; len(b) > 0; b = b[slotCountBytes:] {
			id, n := binary.LittleEndian.Uint32(b), binary.LittleEndian.Uint32(b[4:])
			counts[names[id]] += int(n)
		}
	}
}

// milliseconds is what the workers' clocks show.
func (g *gateway) milliseconds() int64 {
	return g.Now().Sub(hostsim.VirtualEpoch).Milliseconds() + 1000
}

// gauge reads a gauge of the default pool for an address.
func (g *gateway) gauge(name, address string) int64 {
	return g.Metric("pinwheel_" + name + ".pool.default.replica." + address)
}

// decisions reads the counter of a reason in the default pool.
func (g *gateway) decisions(reason policy.Reason) int64 {
	return g.decided("sticky_least_loaded", reason)
}

func (g *gateway) decided(name string, reason policy.Reason) int64 {
	return g.Metric("pinwheel_decisions_total.pool.default.policy." + name + ".reason." + reason.String())
}

// crash makes a worker's VM trap at its next access to shared data, which
// provoke must bring about. The gateway must allow traps.
func (g *gateway) crash(worker *hostsim.Worker, provoke func()) {
	g.t.Helper()
	g.OnSharedData(func(w int, _ hostsim.SharedOp, _ string) {
		if w == worker.Index() {
			panic("crashed by the test")
		}
	})
	provoke()
	g.OnSharedData(nil)
	if err := worker.Err(); !errors.Is(err, hostsim.ErrTrap) {
		g.t.Fatalf("worker %d has not crashed: %v", worker.Index(), err)
	}
}

func (g *gateway) reconfigure(config string) error {
	return g.Reconfigure([]byte(`{"debug_headers":true,` + config + `}`))
}

// config writes a configuration from Go values.
func configJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return strings.TrimSuffix(strings.TrimPrefix(string(b), "{"), "}")
}
