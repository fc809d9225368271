package suite

import (
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// plugin is a running plugin with what it has logged and which requests it has made. A suite runs on one goroutine, and so
// does all that the plugin does.
type plugin struct {
	host     *hostsim.Host // nil where the start was refused
	refused  error
	clock    *hostsim.VirtualClock
	log      []hostsim.LogEntry
	calls    []*madeCall
	clusters map[string]*upstream
	unasked  []string // requests that no answer is for
	crashes  map[int]error
}

// mark is a moment in what a plugin has done.
type mark struct{ log, calls, unasked int }

func (p *plugin) mark() mark { return mark{len(p.log), len(p.calls), len(p.unasked)} }

func (p *plugin) logged(e hostsim.LogEntry) { p.log = append(p.log, e) }

// newCrash is the trap of a virtual machine that lived at the last look, or nil.
func (p *plugin) newCrash() (crash error) {
	if p.crashes == nil {
		p.crashes = map[int]error{}
	}
	look := func(w *hostsim.Worker) {
		if err := w.Err(); err != p.crashes[w.Index()] {
			p.crashes[w.Index()] = err
			if err != nil && crash == nil {
				crash = err
			}
		}
	}
	look(p.host.Main())
	for i := range p.host.Workers() {
		look(p.host.Worker(i))
	}
	return crash
}

// madeCall is a request that the plugin made.
type madeCall struct {
	*hostsim.HTTPCall
	// due is when the plugin hears of its end, on the monotonic clock; 0 for never.
	due   time.Duration
	heard bool // its end has been waited for
}

// String is how lists of requests show one.
func (c *madeCall) String() string {
	s := c.Cluster + ": " + c.Headers.Value(":method") + " " + c.Headers.Value(":authority") + c.Headers.Value(":path")
	for _, kv := range c.Headers {
		if !strings.HasPrefix(kv[0], ":") {
			s += "\n  " + kv[0] + ": " + kv[1]
		}
	}
	if len(c.Body) > 0 {
		s += "\n  body " + strconv.Quote(short(string(c.Body)))
	}
	return s
}

// upstream is a cluster with how often each of its answers was given.
type upstream struct {
	*cluster
	given []int
}

func newUpstreams(clusters map[string]*cluster) map[string]*upstream {
	out := map[string]*upstream{}
	for name, c := range clusters {
		out[name] = &upstream{c, make([]int, len(c.answers))}
	}
	return out
}

// unreachable is what Envoy answers in place of an upstream that takes no connection.
var unreachable = hostsim.HTTPResponse{
	Headers: hostsim.Headers{{":status", "503"}, {"content-length", "91"}, {"content-type", "text/plain"}},
	Body:    []byte("upstream connect error or disconnect/reset before headers. reset reason: connection failure"),
}

// call is hostsim.Config.HTTPCall.
func (p *plugin) call(c *hostsim.HTTPCall) bool {
	u := p.clusters[c.Cluster]
	if u == nil {
		return false
	}
	if c.Worker == hostsim.Canary {
		return true // it hears no answer, and uses none up
	}
	made := &madeCall{HTTPCall: c}
	p.calls = append(p.calls, made)
	now := p.clock.Monotonic()
	if c.Timeout > 0 {
		made.due = now + c.Timeout
	}
	a := u.answer(made)
	if a == nil {
		p.unasked = append(p.unasked, made.String())
		return true
	}
	if a.failure == failureNone {
		return true
	}
	response := a.response()
	if due := now + response.After; made.due == 0 || due < made.due {
		made.due = due
	}
	c.Respond(response)
	return true
}

// The values of answer.failure, in the order of answerFailures.
const (
	failureUnreachable = iota
	failureReset
	failureNone
)

// answer finds the first answer that is for c and not used up.
func (u *upstream) answer(c *madeCall) *answer {
	for i, a := range u.answers {
		if a.times > 0 && u.given[i] >= a.times || a.when != nil && !a.when.fits(c) {
			continue
		}
		u.given[i]++
		return a
	}
	return nil
}

func (a *answer) response() hostsim.HTTPResponse {
	r := hostsim.HTTPResponse{After: a.after}
	switch a.failure {
	case failureReset:
	case failureUnreachable:
		r.Headers, r.Body = unreachable.Headers, unreachable.Body
	default:
		r.Headers, r.Trailers = a.all(), a.trailers
		for _, chunk := range a.chunks {
			r.Body = append(r.Body, chunk...)
		}
	}
	return r
}

// fits reports whether a request is as described.
func (c *callout) fits(m *madeCall) bool {
	if c.cluster != nil && !c.cluster.holds([]string{m.Cluster}) || c.worker != nil && *c.worker != m.Worker {
		return false
	}
	for _, list := range [][]keyed[*matcher]{c.pseudo, c.headers} {
		for _, h := range list {
			if !h.what.holds(m.Headers.Values(h.key)) {
				return false
			}
		}
	}
	for _, h := range c.trailers {
		if !h.what.holds(m.Trailers.Values(h.key)) {
			return false
		}
	}
	return c.body == nil || c.body.holds(bodyValues(m.Body))
}

// bodyValues makes an empty body absent.
func bodyValues(body []byte) []string {
	if len(body) == 0 {
		return nil
	}
	return []string{string(body)}
}

// threadName is how messages call a virtual machine.
func threadName(worker int) string {
	switch worker {
	case hostsim.MainThread:
		return "main thread"
	case hostsim.Canary:
		return "canary"
	}
	return "worker " + strconv.Itoa(worker)
}
