package plugin

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// waiting is a request that the plugin has paused.
type waiting struct {
	*hostsim.Stream
	t    testing.TB
	step hostsim.Step
	body string
}

// pausedChat sends the headers of a chat and fails unless the request waits.
func (g *gateway) pausedChat(worker int, headers ...[2]string) *waiting {
	g.t.Helper()
	return g.paused(worker, append(append(turnHeaders(""), [2]string{"content-type", "application/json"}), headers...))
}

func (g *gateway) paused(worker int, headers hostsim.Headers) *waiting {
	g.t.Helper()
	w := &waiting{Stream: g.Worker(worker).NewStream(), t: g.t}
	step, err := w.RequestHeaders(headers, false)
	if err != nil || step.Flow != hostsim.Wait || step.Headers {
		g.t.Fatalf("the request does not wait: %+v, %v", step, err)
	}
	return w
}

func (w *waiting) chunk(text string, end bool) *waiting {
	w.t.Helper()
	step, err := w.RequestBody([]byte(text), end)
	if err != nil {
		w.t.Fatal(err)
	}
	w.add(step)
	return w
}

func (w *waiting) add(step hostsim.Step) {
	w.body += string(step.Data)
	w.step.Flow, w.step.Headers, w.step.End = step.Flow, w.step.Headers || step.Headers, w.step.End || step.End
}

// still fails unless the request waits.
func (w *waiting) still(when string) {
	w.t.Helper()
	if w.add(w.RequestReady()); w.step.Flow != hostsim.Wait || w.step.Headers {
		w.t.Errorf("%s: the request does not wait: %+v", when, w.step)
	}
}

// goneOn fails unless the request goes on, for that reason, and returns its replica.
func (w *waiting) goneOn(when, reason string) string {
	w.t.Helper()
	if w.add(w.RequestReady()); w.step.Flow != hostsim.Forward || !w.step.Headers {
		w.t.Fatalf("%s: the request waits: %+v", when, w.step)
	}
	if _, err := w.ResponseHeaders(hostsim.Headers{{":status", "200"}}, true); err != nil {
		w.t.Fatal(err)
	}
	h := w.Headers(hostsim.MapResponseHeaders)
	if got := h.Value("x-pinwheel-reason"); got != reason || h.Value("x-pinwheel-replica") != replicaOf(w.Stream) {
		w.t.Errorf("%s: %s on %s, told %s, want %s", when, got, replicaOf(w.Stream), h.Value("x-pinwheel-replica"), reason)
	}
	if err := w.End(hostsim.EndNormal); err != nil {
		w.t.Error(err)
	}
	return replicaOf(w.Stream)
}

func (g *gateway) errors(kind fault) int64 {
	return g.Metric("pinwheel_errors_total.kind." + faultNames[kind])
}

// bodyWarnings are the log lines about bodies that did not come.
func (g *gateway) bodyWarnings() (lines []string) {
	for _, e := range g.Logs() {
		if strings.Contains(e.Message, "without their bodies") {
			lines = append(lines, e.Message)
		}
	}
	return lines
}

// proxy-wasm/proxy-wasm-cpp-host#143: without allow_on_headers_stop_iteration a
// gateway shows no body to a request that waits for it, for ever. Such a request is
// slow, and after a handful in each worker none is.
func TestAGatewayThatWithholdsBodies(t *testing.T) {
	g := startReading(t, 2, false, readingBodies)
	const body = `{"user":"s"}`
	for i := range enoughWithheld {
		for worker := range g.Workers() {
			w := g.pausedChat(worker)
			if i > 0 { // the whole body is there, or a part, or nothing yet
				w.chunk(body[:5], false)
			}
			if i > 1 {
				w.chunk(body[5:], true)
			}
			g.Advance(900 * time.Millisecond)
			w.still("after 0.9 s")
			g.Advance(700 * time.Millisecond)
			w.add(w.RequestReady())
			if w.step.Headers && i == 0 {
				w.chunk(body, true) // late, as from a slow client
			} else if i == 1 {
				w.chunk(body[5:], true)
			}
			w.goneOn("after 1.6 s", "keyless")
			if w.body != body {
				t.Errorf("upstream got %q", w.body)
			}
		}
	}
	// The slow client was no proof, so one more request of each worker waits.
	for worker := range g.Workers() {
		w := g.pausedChat(worker).chunk(body, true)
		g.Advance(1600 * time.Millisecond)
		w.goneOn("after 1.6 s", "keyless")
	}
	for i := range 20 {
		if r := g.on(i%2, chat(body)); r.Hangs || r.reason != "keyless" || r.RequestBody != body {
			t.Fatalf("request %d: %+v", i, r)
		}
	}
	// What needs no body goes on as ever.
	if r := g.turn("s"); r.reason != "placed" {
		t.Errorf("by header: %s", r.reason)
	}
	g.Advance(2 * tick)
	if late, withheld := g.errors(faultBodyLate), g.errors(faultBodyWithheld); late != 2*(enoughWithheld+1) || withheld != 20 {
		t.Errorf("%d late, %d withheld, want %d and 20", late, withheld, 2*(enoughWithheld+1))
	}
	lines := g.bodyWarnings()
	if len(lines) != 2 || !strings.Contains(lines[0], "1 requests") || !strings.Contains(lines[0], "allow_on_headers_stop_iteration: true") {
		t.Errorf("warnings %q", lines)
	}
	g.Advance(61 * tick)
	if lines = g.bodyWarnings(); len(lines) != 4 || !strings.Contains(lines[3], "13 requests") {
		t.Errorf("warnings a minute later %q", lines)
	}
	// Another configuration of the gateway may not withhold them.
	if err := g.reconfigure(readingBodies + `,"body":{"wait":"2s"}`); err != nil {
		t.Fatal(err)
	}
	g.end(g.pausedChat(0).Stream, hostsim.EndClientGone)
}

// A client that is slow, or stalls, costs itself the id and nobody else anything.
func TestSlowClients(t *testing.T) {
	g := startReading(t, 1, true, readingBodies+`,"body":{"wait":"500ms"}`)
	for i := range 10 {
		w := g.pausedChat(0)
		g.Advance(800 * time.Millisecond)
		w.chunk(`{"user":"s"}`, true).goneOn(fmt.Sprint("slow client ", i), "keyless")
	}
	if r := g.do(chat(`{"user":"s"}`)); r.reason != "placed" {
		t.Fatalf("behind slow clients: %s", r.reason)
	}
	// One that sends now and then is waited for as long as it does.
	w := g.pausedChat(0)
	for _, c := range strings.Split(`{"user":"s`, "") {
		w.chunk(c, false)
		g.Advance(400 * time.Millisecond)
		w.still("while the body comes")
	}
	w.chunk(`"}`, false).goneOn("a trickle", "pinned")
	// But not for ever.
	w = g.pausedChat(0)
	for waited := 0; waited < 5200; waited += 400 {
		w.chunk("[", false)
		g.Advance(400 * time.Millisecond)
	}
	w.goneOn("an endless trickle", "keyless")
	// One that stalls is routed by what it has sent.
	for body, want := range map[string]string{`{"user":"s","metadata":{`: "pinned", `{"user":"s`: "keyless"} {
		w = g.pausedChat(0).chunk(body, false)
		g.Advance(time.Second)
		w.chunk(`never seen`, true)
		w.goneOn("a stall", want)
		if w.body != body+"never seen" {
			t.Errorf("upstream got %q", w.body)
		}
	}
	g.Advance(2 * tick)
	if n := g.errors(faultBodyLate); n != 13 || g.errors(faultBodyWithheld) != 0 {
		t.Errorf("%d late, want 13; %d withheld", n, g.errors(faultBodyWithheld))
	}
	if lines := g.bodyWarnings(); len(lines) != 1 || !strings.Contains(lines[0], "allow_on_headers_stop_iteration") {
		t.Errorf("warnings %q", lines)
	}
	g.Advance(61 * tick)
	if lines := g.bodyWarnings(); len(lines) != 2 || !strings.Contains(lines[1], "did not come within 500ms") {
		t.Errorf("warnings a minute later %q", lines)
	}
}

// Once a body has come, clients whose bodies come in the moment when their requests
// go on without do not switch off the reading of all others'.
func TestSlowClientsSwitchNothingOff(t *testing.T) {
	g := startReading(t, 1, true, readingBodies)
	if r := g.do(chat(`{"user":"s"}`)); r.reason != "placed" {
		t.Fatal(r.reason)
	}
	for range 2 * enoughWithheld {
		w := g.pausedChat(0)
		for w.add(w.RequestReady()); w.step.Flow == hostsim.Wait; w.add(w.RequestReady()) {
			g.Advance(10 * time.Millisecond)
		}
		w.chunk(`{"user":"s"}`, true).goneOn("a body at the last moment", "keyless")
	}
	if r := g.do(chat(`{"user":"s"}`)); r.reason != "pinned" {
		t.Errorf("behind them: %s", r.reason)
	}
}

// Many requests wait at a time, each for its own body, and each ends its own way.
func TestManyWaitAtOnce(t *testing.T) {
	g := startReading(t, 2, true, readingBodies)
	var open []*waiting
	for i := range 400 {
		open = append(open, g.pausedChat(i%2))
	}
	for i := range open {
		if i%4 < 3 {
			open[i].chunk(fmt.Sprintf(`{"user":"s%d`, i), false)
		}
	}
	home := map[int]string{}
	for i := len(open) - 1; i >= 0; i-- {
		switch i % 4 {
		case 0:
			home[i] = open[i].chunk(`"}`, true).goneOn("answered", "placed")
		case 1:
			g.end(open[i].Stream, hostsim.EndClientGone)
		}
	}
	g.Advance(1600 * time.Millisecond)
	for i := range open {
		if i%4 >= 2 {
			open[i].goneOn("late", "keyless")
		}
	}
	for i, want := range home {
		if r := g.do(chat(fmt.Sprintf(`{"user":"s%d"}`, i))); r.reason != "pinned" || r.replica != want {
			t.Errorf("session %d: %s on %s, want %s", i, r.reason, r.replica, want)
		}
	}
	g.Advance(2 * tick)
	g.mustRun(0)
	if n := g.errors(faultBodyLate); n != 200 {
		t.Errorf("%d late, want 200", n)
	}
}

// The requests that wait are bounded, and what they take; those beyond are routed
// at once.
func TestTooManyWait(t *testing.T) {
	g := startReading(t, 1, true, threeReplicas+`,"session":{"body":["user"],"max_id_bytes":65536,"scope_headers":["x-tenant"]}`)
	tenant := [2]string{"x-tenant", strings.Repeat("t", 50_000)}
	waits := 0
	for r := with(chat(`{"user":"s"}`), tenant); ; waits++ {
		s := g.Worker(0).NewStream()
		step, err := s.RequestHeaders(append(turnHeaders(""), r.Headers...), false)
		if err != nil {
			t.Fatal(err)
		}
		if step.Flow == hostsim.Forward {
			break
		}
	}
	if most := maxPausedBytes / 115_000; waits < most-5 || waits > most+5 {
		t.Errorf("%d requests of 115 KB each wait, want about %d", waits, most)
	}

	g = startReading(t, 1, true, readingBodies)
	var open []*waiting
	for range maxPaused {
		open = append(open, g.pausedChat(0))
	}
	for range 3 {
		if r := g.on(0, chat(`{"user":"s"}`)); r.Hangs || r.reason != "keyless" {
			t.Fatalf("beyond the bound: %+v", r)
		}
	}
	before := g.Worker(0).Memory()
	g.end(open[0].Stream, hostsim.EndClientGone)
	if r := g.on(0, chat(`{"user":"s"}`)); r.reason != "placed" {
		t.Errorf("when one has gone: %s", r.reason)
	}
	for _, w := range open[1:] {
		w.chunk(`{"user":"s"}`, true).goneOn("in the end", "pinned")
	}
	g.Advance(2 * tick)
	if n := g.errors(faultBodyBusy); n != 3 {
		t.Errorf("%d counted, want 3", n)
	}
	if before > 24<<20 {
		t.Errorf("%d bytes of memory with %d requests waiting", before, maxPaused)
	}
}

// higress-group/higress#3920: guest memory never shrinks, so what a body needs once
// every worker has for ever.
func TestBodiesDoNotGrowMemory(t *testing.T) {
	g := startReading(t, 1, true, readingBodies+`,"body":{"max_bytes":1048576}`)
	small := chat(`{"messages":["hello"],"user":"s"}`)
	for range 20_000 {
		g.on(0, small)
	}
	before := g.Worker(0).Memory()
	for range 20 {
		g.on(0, chat(`{"prompt":"`, strings.Repeat("x", 20<<20), `","user":"s"}`))
	}
	for range 20_000 {
		g.on(0, small)
	}
	if after := g.Worker(0).Memory(); after > before+goArena {
		t.Errorf("%d bytes before bodies of 20 MB, %d after", before, after)
	}
}

// A turn whose session the body names leaves no garbage either.
func TestATurnByItsBodyLeavesNoGarbage(t *testing.T) {
	g := startWith(t, hosttest.Options{Workers: 1, Adjust: func(c *hostsim.Config) {
		c.AllowOnHeadersStopIteration = true
		c.Env = map[string]string{"GOGC": "off"}
	}}, readingBodies)
	if err := g.Reconfigure([]byte("{" + readingBodies + "}")); err != nil { // debug headers read a property
		t.Fatal(err)
	}
	headers := append(turnHeaders(""), [2]string{"content-type", "application/json"})
	long := []byte(`{"messages":["` + strings.Repeat("x", 40_000) + `"],`)
	run := func(turns int) uint64 {
		for i := range turns {
			s := g.Worker(0).NewStream()
			_, err := s.RequestHeaders(headers, false)
			if err == nil {
				_, err = s.RequestBody(long, false)
			}
			if err == nil {
				_, err = s.RequestBody(fmt.Appendf(nil, `"metadata":{"session_id":"s%d"}}`, i%300), true)
			}
			if err == nil {
				_, err = s.ResponseHeaders(okHeaders, true)
			}
			if err != nil {
				t.Fatal(err)
			}
			g.end(s, hostsim.EndNormal)
		}
		return g.Worker(0).Memory()
	}
	before := run(3000)
	if after := run(30_000); after != before {
		t.Errorf("%d bytes of garbage a turn, want none", (after-before)/30_000)
	}
	if n := g.sessions("default"); n != 300 {
		t.Errorf("%d sessions", n)
	}
}
