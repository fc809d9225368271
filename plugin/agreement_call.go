package plugin

import (
	"strconv"
	"strings"
	"time"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/plugin/etcd"
	"github.com/pinwheel-proxy/pinwheel/plugin/json"
)

// callKind is what etcd is asked for. It is a metric label.
type callKind uint8

const (
	callCreate callKind = iota
	callMove
	callRenew
	callRelease
	callPoll
	callGrant
	callToken
	callOrder

	numCalls = int(callOrder) + 1
)

var callNames = [numCalls]string{"create", "repin", "renew", "release", "poll", "grant", "auth", "order"}

// callResult is what came of it. It is a metric label.
type callResult uint8

const (
	resultOK callResult = iota
	// resultTimeout: no answer in time.
	resultTimeout
	// resultUnreachable: no connection, or no leader.
	resultUnreachable
	// resultRefused: etcd does not do it.
	resultRefused

	numResults = int(resultRefused) + 1
)

var resultNames = [numResults]string{"ok", "timeout", "unreachable", "refused"}

// agreementStats counts what the agreement did since the numbers were last reported.
type agreementStats struct {
	calls [numCalls][numResults]uint64
	// kept and moved are pins in doubt that etcd has confirmed, or has another home for.
	kept, moved uint64
	// fallbacks are turns for which etcd should have been asked, and was not, or did not answer.
	fallbacks uint64
}

// callouts are the questions under way, of all pools of a configuration in one worker.
type callouts struct {
	open map[uint32]call
	// asking are the requests that wait for an answer, and answering those that are answered themselves after one.
	asking    map[*question]bool
	answering map[*releasing]bool
}

func (c *callouts) wait(q *question) {
	if c.asking == nil {
		c.asking = map[*question]bool{}
	}
	c.asking[q] = true
}

func (c *callouts) replying(r *releasing) {
	if c.answering == nil {
		c.answering = map[*releasing]bool{}
	}
	c.answering[r] = true
}

type call struct {
	agreement  *agreement
	kind       callKind
	path, body string
	sent       int64 // ms
	// left is how often it may still be sent where nobody is reached.
	left int
	then func(etcd.Answer)
}

// lateAfter is when a question is given up that the gateway should have answered long ago, in ms.
const lateAfter = 10_000

// resends is how often a request is sent again that reached nobody: the next member of etcd may be there, and a connection that
// was refused, or broke, has cost half a millisecond. Each request may be carried out twice.
const resends = 2

// call sends a request to etcd; then is called with the answer, once and never before this returns. It is false if the
// gateway cannot send it.
func (a *agreement) call(kind callKind, path, body string, then func(etcd.Answer)) bool {
	return a.send(call{agreement: a, kind: kind, path: path, body: body, left: resends, then: then})
}

func (a *agreement) send(c call) bool {
	timeout := a.Timeout
	if c.kind >= callPoll && c.kind != callGrant { // requests wait for leases, too
		timeout = max(timeout, a.Poll)
	}
	id, err := abi.HTTPPost(a.Cluster, c.path, a.token(), c.body, uint32(timeout.Milliseconds()))
	c.sent = milliseconds()
	if err != nil && a.beginning {
		return false
	}
	if err != nil {
		a.stats.calls[c.kind][resultUnreachable]++
		a.trip("the gateway cannot ask: "+err.Error(), c.sent)
		return false
	}
	if a.calls.open == nil {
		a.calls.open = map[uint32]call{}
	}
	a.calls.open[id] = c
	return true
}

// answered takes the answer to a call in.
func (c *callouts) answered(id uint32, size int) {
	asked, ok := c.open[id]
	if !ok {
		return
	}
	delete(c.open, id)
	statusHeader.Find(abi.HTTPCallHeaders)
	status := strings.Clone(statusHeader.Value(0))
	body := ""
	if size <= maxAnswer {
		body = string(abi.HTTPCallBody(size))
	}
	abi.FreeHostMemory()
	answer, a := etcd.Read(status, body), asked.agreement
	result := resultOf(asked.kind, status, answer)
	a.stats.calls[asked.kind][result]++
	now := milliseconds()
	if asked.kind < callPoll {
		a.latency.Record(uint64(now - asked.sent))
	}
	if asked.left--; result == resultUnreachable && answer.Code == etcd.NoAnswer && asked.left >= 0 && a.send(asked) {
		return
	}
	a.heard(asked.kind, result, status, answer, now)
	asked.then(answer)
}

func resultOf(kind callKind, status string, answer etcd.Answer) callResult {
	switch {
	case answer.Code == etcd.OK, kind == callGrant && answer.Code == etcd.Exists, kind < callPoll && answer.Code == etcd.NotFound:
		return resultOK
	case status == "504":
		return resultTimeout
	case answer.Code == etcd.NoAnswer, answer.Code == etcd.Unavailable, answer.Code == etcd.Cancelled:
		return resultUnreachable
	}
	return resultRefused
}

// heard learns from an answer whether etcd is well. Leases are granted many at a time, and missed where they are needed.
func (a *agreement) heard(kind callKind, result callResult, status string, answer etcd.Answer, now int64) {
	switch {
	case result == resultOK, kind == callGrant && result != resultRefused:
	case result == resultTimeout:
		a.trip("etcd does not answer in time", now)
	case result == resultUnreachable:
		a.trip("etcd is not reached (HTTP status "+status+")", now)
	default:
		if a.Username != "" && kind != callToken && (answer.Code == etcd.Unauthenticated || answer.Code == etcd.BadArgument) {
			a.setToken("")
		}
		a.trip("etcd refuses: code "+strconv.Itoa(int(answer.Code))+", "+answer.Message, now)
	}
}

// trip opens the breaker: only polls go to etcd until one is answered.
func (a *agreement) trip(why string, now int64) {
	a.update(func(state *agreementState) bool {
		if state.down != 0 {
			return false
		}
		state.down = now
		return true
	})
	a.warn(why+"; new sessions are placed by hash, and asked for once etcd answers", now)
}

// mend closes the breaker, in a state that is being changed.
func (a *agreement) mend(state *agreementState, now int64) {
	if state.down == 0 {
		return
	}
	if a.told {
		proxywasm.LogInfo("pinwheel: pool " + a.pool + ": cluster " + quote(a.Cluster) + ": etcd answers again after " +
			(time.Duration(now-state.down) * time.Millisecond).String())
		a.told = false
	}
	state.down, state.recovered = 0, now
}

func (a *agreement) setToken(token string) {
	_, cas, err := a.data.Get(a.tokenKey)
	if err == nil {
		_ = a.data.Set(a.tokenKey, []byte(token), cas) // another worker's is as good
	}
}

// token returns the one that etcd gave, "" if none is needed or there is none yet.
func (a *agreement) token() string {
	if a.Username == "" {
		return ""
	}
	token, _, _ := a.data.Get(a.tokenKey)
	return string(token)
}

// authenticate asks for a token, then polls.
func (a *agreement) authenticate() {
	body := etcd.Authenticate(string(json.AppendString(nil, a.Username)), string(json.AppendString(nil, a.Password)))
	a.call(callToken, etcd.AuthenticatePath, body, func(r etcd.Answer) {
		if r.Code == etcd.OK && r.Token != "" {
			a.setToken(r.Token)
			a.poll(milliseconds())
		}
	})
}

// grant makes the leases, and then does what it could not be done for want of them. Leases that are there already will do.
func (a *agreement) grant(l etcd.Leases, then func()) {
	first := func(r etcd.Answer) {
		if r.Code == etcd.OK || r.Code == etcd.Exists {
			if a.call(callGrant, etcd.GrantPath, etcd.Grant(l.Log, logTTL), func(etcd.Answer) { then() }) {
				return
			}
		}
		then()
	}
	if !a.call(callGrant, etcd.GrantPath, etcd.Grant(l.Session, a.ttl), first) {
		then()
	}
}

// giveUp answers the calls that the gateway has forgotten.
func (c *callouts) giveUp(now int64) {
	for id, asked := range c.open {
		if now-asked.sent > lateAfter+asked.agreement.Poll.Milliseconds() {
			delete(c.open, id)
			asked.then(etcd.Answer{Code: etcd.NoAnswer})
		}
	}
}
