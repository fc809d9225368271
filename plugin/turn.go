package plugin

import (
	"encoding/binary"
	"strings"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// turn is one request.
type turn struct {
	types.DefaultHttpContext
	filter    *filter
	pause     *pause     // nil: the request does not wait for its body
	question  *question  // nil: nor for etcd
	releasing *releasing // nil: nor for etcd's releases
	pool      *pool      // nil until decided
	key       policy.Key
	decision  policy.Decision
	// touched is when the session's pin was last kept alive, in ms.
	touched int64
	// began is when the turn was sent to its replica, in ms.
	began int64
	// kept says that the session has a pin, to be kept alive while the turn runs.
	kept bool
}

// OnHttpRequestHeaders names the replica that serves the request.
func (t *turn) OnHttpRequestHeaders(_ int, end bool) types.Action {
	f := t.filter
	f.served = true
	r := &f.request
	r.read()
	if path := r.names.Value(r.path); begins(path, f.config.Release.Path) || begins(path, f.config.Admin.Path) {
		if a, ok := f.answer(r, path); ok {
			if end || !t.holdReply(r, a) {
				t.reply(a, abi.CurrentStream())
			}
			return types.ActionPause
		}
	}
	p := f.only
	if p == nil {
		if p = f.poolOf(); p == nil {
			f.strip()
			return types.ActionContinue
		}
	}
	if r.repeated {
		p.store.fault(faultRepeatedHeader)
	}
	key, refused, keyed := f.key(r, r.id)
	now := milliseconds()
	if s := p.store; !s.heard || !s.inForce() {
		p.store.hear(connectionID(), now)
	}
	if !end && f.reading {
		d, pinned, trusted := policy.Decision{}, false, false
		if keyed && p.readsPrompts() {
			if p.agreement != nil {
				trusted = p.holds(key, now)
			} else {
				d, pinned = p.pinned(key, now)
			}
		}
		switch {
		case pinned:
			t.route(p, key, keyed, d, now)
			return types.ActionContinue
		case trusted: // needs no prompt
		case t.waits(p, r, sessionKey{key, refused, keyed}, now):
			return types.ActionPause
		}
	}
	if p.agreement != nil && keyed {
		if t.agree(p, key, nil, now) {
			return types.ActionPause
		}
		return types.ActionContinue
	}
	t.route(p, key, keyed, p.decide(key, keyed, refused, nil, now), now)
	return types.ActionContinue
}

// answer returns the answer to a request that the plugin itself serves.
func (f *filter) answer(r *request, path string) (a localReply, ok bool) {
	if query, ok := f.isRelease(path); ok {
		return f.release(r, query), true
	}
	if action, query, ok := f.isAdmin(path); ok {
		return f.admin(r, action, query), true
	}
	return a, false
}

// route sends the request where the decision says: it tells the gateway, and counts the
// request as running. A header that came with it is never left standing.
func (t *turn) route(p *pool, key policy.Key, keyed bool, d policy.Decision, now int64) {
	f := t.filter
	t.pool, t.key = p, key
	if target := p.targetOf(d, key, now); target == "" {
		f.strip()
	} else if err := abi.ReplaceRequestHeader(f.config.Target.Header, target); err != nil {
		p.store.fault(faultHeader)
	}
	if d.Replica != 0 {
		t.began, t.touched, t.kept = now, now, keyed && p.pins
		p.inflight.begin(d.Replica)
	}
	t.decision = d // what is taken off at the end has been counted
	if f.config.DecisionLog.Enabled {
		f.logDecision(p, key, d)
	}
}

// connectionID returns the id of the request's connection, 0 if the gateway does
// not tell.
func connectionID() uint64 {
	id, err := proxywasm.GetProperty([]string{"connection", "id"})
	if err != nil {
		return 0
	}
	return risingID(id)
}

// risingID reads a connection id, 0 if it tells nothing of the connection's age:
// those of QUIC are hashes, and no process counts up to 2^48.
func risingID(property []byte) uint64 {
	if len(property) != 8 {
		return 0
	}
	id := binary.LittleEndian.Uint64(property)
	if id >= 1<<48 {
		return 0
	}
	return id
}

func (f *filter) strip() { _ = proxywasm.RemoveHttpRequestHeader(f.config.Target.Header) }

// OnHttpResponseHeaders notes how the replica answers, looks once a tick whether
// the gateway obeys the decision, and explains it to the client if asked to.
func (t *turn) OnHttpResponseHeaders(int, bool) types.Action {
	p, debug := t.pool, t.filter.config.DebugHeaders
	if p == nil {
		return types.ActionContinue
	}
	var a answer
	switch {
	case t.decision.Replica == 0 || p.store.health.Failures == 0:
		t.succeeded()
	case !p.skipsAnswer(t.decision.Replica):
		if a = t.readAnswer(); a.plain() {
			t.succeeded()
		}
	}
	if a.plain() && p.looked && !debug {
		return types.ActionContinue
	}
	named, served := p.store.addressOf(t.decision.Replica), upstreamAddress()
	if !a.plain() {
		t.answered(a, named, served)
	}
	if served != "" && named != "" && served != named && !isLocalReply() {
		if !a.retried && !p.looked {
			p.servedElsewhere(named, served)
		}
		named = served
	}
	p.looked = true
	if debug {
		if named != "" {
			t.explain("x-pinwheel-replica", named)
		}
		t.explain("x-pinwheel-reason", t.decision.Reason.String())
	}
	return types.ActionContinue
}

// upstreamAddress returns the host that serves the request, "" if the gateway
// does not tell.
func upstreamAddress() string {
	address, err := proxywasm.GetProperty([]string{"upstream", "address"})
	if err != nil {
		return ""
	}
	return string(address)
}

// isLocalReply reports whether the gateway itself answers: the upstream address
// is then the last host that it tried.
func isLocalReply() bool { return isLocal(answerDetails()) }

func isLocal(details string) bool {
	return details != "" && details != "via_upstream"
}

// isOthersFailure reports whether a failure is none of the host at the upstream
// address: the gateway's circuit breaker kept the request from it, or the gateway or a
// filter had a reason of its own. Source: Envoy, ResponseCodeDetailValues.
func isOthersFailure() bool {
	details := answerDetails()
	return isLocal(details) && (strings.HasSuffix(details, "{overflow}") ||
		!strings.HasPrefix(details, "upstream_") && !strings.HasSuffix(details, "_timeout"))
}

// answerDetails returns how the answer came about, "" if the gateway does not tell.
func answerDetails() string {
	details, err := proxywasm.GetProperty([]string{"response", "code_details"})
	if err != nil {
		return ""
	}
	return string(details)
}

func (t *turn) explain(header, value string) {
	if err := proxywasm.ReplaceHttpResponseHeader(header, value); err != nil {
		t.pool.store.fault(faultHeader)
	}
}

// OnHttpStreamDone runs once for every stream, however it ended and whether or
// not it was ever routed.
func (t *turn) OnHttpStreamDone() {
	f := t.filter
	if t.pause != nil {
		f.recycle(f.unwait(t))
	}
	if t.question != nil || t.releasing != nil {
		f.unask(t)
		t.abandonReply()
	}
	if t.decision.Replica != 0 {
		t.pool.inflight.end(t.decision.Replica)
	}
	// This is its deletion: what follows is another stream's. What is not forgotten here
	// says nothing without a pool and a replica.
	t.pool, t.decision, t.kept = nil, policy.Decision{}, false
}
