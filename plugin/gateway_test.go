package plugin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

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
	h := hosttest.New(t, hosttest.Options{
		Wasm: wasm, Build: "make wasm", Workers: workers,
		Config: `{"debug_headers":true,` + config + `}`,
		Adjust: func(c *hostsim.Config) { c.LogLevel = hostsim.LogInfo },
	})
	return &gateway{Host: h, t: t}
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
	value, _, ok := g.SharedData().Get("pw1/" + pool + "/replicas")
	if !ok {
		g.t.Fatalf("pool %s has no record", pool)
	}
	var r record
	if err := r.decode(value); err != nil {
		g.t.Fatal(err)
	}
	return r
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
