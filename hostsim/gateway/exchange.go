package gateway

import (
	"context"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// exchange is one request and its response. All calls into the plugin, and all writes to the client, come from the
// handler's own goroutine in run; two others only carry bytes to it, one from the client and one from the upstream. So
// the plugin sees one order of events, and its worker is never held while anybody waits for the network.
type exchange struct {
	gateway *Gateway
	cluster *cluster
	filter  filter
	wake    <-chan struct{} // the plugin has moved a waiting stream
	w       http.ResponseWriter
	out     *http.ResponseController
	r       *http.Request
	ctx     context.Context // ends with the client, or with the exchange
	cancel  context.CancelFunc

	incoming  chan part // from the client; nil once complete
	announced []string  // names of the request's trailers
	reading   sync.WaitGroup
	held      int // bytes that the plugin holds back

	feed       *feed  // the request's body on its way to the upstream; nil before that and afterwards
	pending    []byte // what feed takes next
	pendingEnd bool   // nothing comes after pending but trailers

	answer   chan part // from the upstream; nil before and after
	answered bool      // a complete response has gone to the client
	begun    bool      // the response's headers have gone to the client

	record  record
	refused error       // why it is not admitted
	idle    *time.Timer // runs while the request is incomplete; nil without a bound
	stall   stallWatch
}

// part is a piece of a message: headers if it has any, else body. Trailers come with the end.
type part struct {
	headers  hostsim.Headers
	data     []byte
	trailers hostsim.Headers
	end      bool
	err      error
	flags    int64 // of the error: what the property response.flags answers
	status   int   // of the error; 0 means 503
	// attempts is the number of hosts that were asked.
	attempts int
}

func newExchange(g *Gateway, w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{gateway: g, w: w, out: http.NewResponseController(w), r: r}
	x.announced = slices.Collect(maps.Keys(r.Trailer)) // before the body's end fills the map
	x.ctx, x.cancel = context.WithCancel(r.Context())
	x.cluster = g.clusterFor(r.Host)
	if x.refused = g.admit(r); x.refused != nil {
		x.filter = &passing{}
	} else {
		x.filter = g.filterFor(r)
	}
	if g.config.OnHeaders != nil || g.config.OnEnd != nil {
		x.record.Began = time.Now()
	}
	x.wake = x.filter.Wake()
	return x
}

// run takes the exchange to its end and says how it ended.
func (x *exchange) run() hostsim.EndReason {
	x.filter.SetProperty("xds.cluster_name", []byte(x.cluster.name))
	x.filter.SetProperty("source.address", []byte(x.r.RemoteAddr))
	noBody := x.r.ContentLength == 0 // -1 where a body follows of which only the end will tell the length
	if !noBody {
		x.readBody()
	}
	if x.refused != nil {
		return x.refuseEarly()
	}
	step, _ := x.filter.RequestHeaders(requestHeaders(x.r), noBody) // of a crash the step says what to do
	if over, reason := x.request(step); over {
		return reason
	}
	for {
		if over, reason := x.next(); over {
			return reason
		}
	}
}

// next waits for one event and acts on it.
func (x *exchange) next() (over bool, reason hostsim.EndReason) {
	// What the upstream or the plugin has not taken yet holds the client back.
	incoming := x.incoming
	if len(x.pending) > 0 || x.held > x.gateway.config.BufferLimit {
		incoming = nil
	}
	var chunks chan<- []byte
	if x.feed != nil && len(x.pending) > 0 {
		chunks = x.feed.chunks
	}
	select {
	case p := <-incoming:
		return x.fromClient(p)
	case chunks <- x.pending:
		x.pending = nil
		x.endFeed()
	case p := <-x.answer:
		return x.fromUpstream(p)
	case <-x.wake:
		if over, reason = x.request(x.filter.RequestReady()); over {
			return over, reason
		}
		return x.response(x.filter.ResponseReady())
	case <-x.upload():
		return x.fail(late())
	case <-x.ctx.Done():
		return true, hostsim.EndClientGone
	}
	return false, 0
}

// upload ends when the request has stood still for too long. Each call begins anew.
func (x *exchange) upload() <-chan time.Time {
	if x.idle == nil || x.incoming == nil {
		return nil
	}
	x.idle.Reset(x.gateway.config.IdleTimeout)
	return x.idle.C
}

func (x *exchange) fromClient(p part) (bool, hostsim.EndReason) {
	if p.end || p.err != nil {
		x.incoming = nil
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(p.err, &tooLarge) {
		return x.fail(part{err: errTooLarge, status: http.StatusRequestEntityTooLarge})
	}
	if p.err != nil {
		return true, hostsim.EndClientGone
	}
	x.record.RequestBytes += int64(len(p.data))
	x.held += len(p.data)
	if len(p.trailers) == 0 {
		step, _ := x.filter.RequestBody(p.data, p.end)
		return x.request(step)
	}
	if len(p.data) > 0 {
		step, _ := x.filter.RequestBody(p.data, false)
		if over, reason := x.request(step); over {
			return over, reason
		}
	}
	step, _ := x.filter.RequestTrailers(p.trailers)
	return x.request(step)
}

// request acts on what the plugin lets through towards the upstream.
func (x *exchange) request(step hostsim.Step) (bool, hostsim.EndReason) {
	switch step.Flow {
	case hostsim.Reply:
		return true, x.reply(x.filter.LocalReply())
	case hostsim.Reset:
		return true, hostsim.EndUpstreamReset
	case hostsim.Forward:
		x.held = 0
	}
	if len(x.pending) == 0 {
		x.pending = step.Data
	} else {
		x.pending = append(x.pending, step.Data...)
	}
	x.pendingEnd = x.pendingEnd || step.End
	if step.Headers {
		x.connect(x.filter.Headers(hostsim.MapRequestHeaders))
	}
	x.endFeed()
	return false, 0
}

// endFeed tells the upstream that the request is complete, once it is.
func (x *exchange) endFeed() {
	if x.feed != nil && x.pendingEnd && len(x.pending) == 0 {
		x.feed.end(x.filter.Headers(hostsim.MapRequestTrailers))
		x.feed = nil
	}
}

// connect starts the upstream's side of the exchange.
func (x *exchange) connect(h hostsim.Headers) {
	x.answer = make(chan part)
	if len(x.pending) > 0 || !x.pendingEnd || len(x.filter.Headers(hostsim.MapRequestTrailers)) > 0 {
		x.feed = newFeed(x.ctx, x.gateway.config.BufferLimit, x.announced)
	}
	go x.forward(h, x.feed, x.answer)
}

func (x *exchange) fromUpstream(p part) (bool, hostsim.EndReason) {
	var step hostsim.Step
	switch {
	case p.err != nil && x.ctx.Err() != nil:
		return true, hostsim.EndClientGone
	case p.err != nil && x.begun:
		return x.fail(part{err: errBroken})
	case p.err != nil:
		return x.fail(p)
	case p.headers != nil:
		step, _ = x.filter.ResponseHeaders(p.headers, p.end)
	case len(p.trailers) > 0:
		if len(p.data) > 0 {
			step, _ = x.filter.ResponseBody(p.data, false)
			if over, reason := x.response(step); over {
				return over, reason
			}
		}
		step, _ = x.filter.ResponseTrailers(p.trailers)
	default:
		step, _ = x.filter.ResponseBody(p.data, p.end)
	}
	return x.response(step)
}

// fail ends a request for a reason of the gateway's: with an answer, or by breaking off the one that is under way.
func (x *exchange) fail(p part) (bool, hostsim.EndReason) {
	if !x.begun {
		return x.refuse(p)
	}
	x.explain(p.err)
	if p.status == http.StatusRequestTimeout {
		return true, hostsim.EndTimeout
	}
	return true, hostsim.EndUpstreamReset
}

// explain notes why no upstream has answered, and returns that.
func (x *exchange) explain(why error) []byte {
	x.record.Detail = strings.ReplaceAll(why.Error(), " ", "_")
	return []byte(x.record.Detail)
}

// refuse answers a request that no upstream host has. As any response it passes the plugin, which learns from the
// properties what has happened.
func (x *exchange) refuse(p part) (bool, hostsim.EndReason) {
	x.answer = nil
	x.filter.SetProperty("response.code_details", x.explain(p.err))
	x.filter.SetProperty("response.flags", hostsim.PropertyInt(p.flags))
	body := p.err.Error() + "\n"
	if p.status == 0 {
		p.status = http.StatusServiceUnavailable
	}
	headers := append(localHeaders(p.status, body), [2]string{attemptCount, strconv.Itoa(p.attempts)})
	step, _ := x.filter.ResponseHeaders(headers, false)
	if over, reason := x.response(step); over {
		return over, reason
	}
	step, _ = x.filter.ResponseBody([]byte(body), true)
	return x.response(step)
}

// response acts on what the plugin lets through towards the client.
func (x *exchange) response(step hostsim.Step) (bool, hostsim.EndReason) {
	switch step.Flow {
	case hostsim.Reply:
		return true, x.reply(x.filter.LocalReply())
	case hostsim.Reset:
		return true, hostsim.EndUpstreamReset
	}
	if step.Headers {
		x.writeHeaders(x.filter.Headers(hostsim.MapResponseHeaders))
	}
	if x.begun && !x.write(step.Data, !step.End) {
		return true, hostsim.EndClientGone
	}
	if !step.End {
		return false, 0
	}
	x.writeTrailers(x.filter.Headers(hostsim.MapResponseTrailers))
	x.answered = true
	return true, hostsim.EndNormal
}

// reply gives the client what the plugin or the host answers in place of an upstream.
func (x *exchange) reply(r *hostsim.LocalReply) hostsim.EndReason {
	x.record.Detail = "local_reply"
	x.writeHeaders(r.Headers)
	if len(r.Body) > 0 && !x.write(r.Body, false) {
		return hostsim.EndClientGone
	}
	x.answered = true
	return hostsim.EndNormal
}

const (
	lingerTime  = time.Second
	lingerBytes = 4 << 20
)

// close ends the plugin's stream, the upstream's side, and the reading of the request, in this order.
func (x *exchange) close(reason hostsim.EndReason) {
	_ = x.filter.End(reason) // a crash here has no one left to tell; the host has logged it
	if x.incoming != nil {
		x.drain()
	}
	x.cancel()
	x.reading.Wait()
	if limit := x.gateway.config.IdleTimeout; limit > 0 && x.r.ProtoMajor == 2 {
		_ = x.out.SetWriteDeadline(time.Now().Add(limit)) // for what net/http still has of the answer
	}
	if x.refused == nil {
		x.gateway.admitted.Add(-1)
	}
	x.record.End = reason
	x.tell(x.gateway.config.OnEnd)
}

// drain takes the rest of a request that was answered early, for an HTTP/1 client that is still sending would not see the
// answer: its connection would be reset under it. Nobody gets longer than lingerTime for that. HTTP/2 has a way to say
// that the rest is not wanted.
func (x *exchange) drain() {
	deadline := time.Now()
	if x.answered && x.r.ProtoMajor == 1 {
		_ = x.out.Flush()
		deadline = deadline.Add(lingerTime)
	}
	_ = x.out.SetReadDeadline(deadline) // where this fails, the body of that client ends with its connection
	for taken := 0; taken < lingerBytes; {
		select {
		case p := <-x.incoming:
			taken += len(p.data)
			if p.end || p.err != nil {
				return
			}
		case <-x.ctx.Done():
			return
		}
	}
	_ = x.out.SetReadDeadline(time.Now())
}
