package gateway

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

var (
	errNoHost  = errors.New("no healthy upstream")
	errConnect = errors.New("upstream connection failure")
	errReset   = errors.New("upstream reset before response started")
	errBroken  = errors.New("upstream reset after response started")
	errRequest = errors.New("the request's path or method cannot be sent upstream")
)

// What the property response.flags answers. Values as seen on Envoy 1.36.4 and 1.40.0.
const (
	flagNoHost  = 2
	flagConnect = 32
	flagReset   = 64
)

// connectError marks an attempt in which no byte has left for the upstream, so that another host may be tried.
type connectError struct{ cause error }

func (e *connectError) Error() string { return e.cause.Error() }
func (e *connectError) Unwrap() error { return e.cause }

// forward sends the request to the first host that takes the connection, and carries its response to the answer channel
// until that ends or the exchange does. Runs on its own goroutine.
func (x *exchange) forward(h hostsim.Headers, body *feed, answer chan<- part) {
	send := func(p part) bool {
		select {
		case answer <- p:
			return true
		case <-x.ctx.Done():
			return false
		}
	}
	resp, failure := x.attempt(h, body)
	if resp == nil {
		send(failure)
		return
	}
	defer func() { x.record.asked.Load().running.Add(-1) }()
	defer resp.Body.Close()
	var buffers [2][]byte
	p := part{headers: responseHeaders(resp), end: resp.Body == http.NoBody}
	p.headers.Set(attemptCount, strconv.Itoa(failure.attempts))
	for i := 0; send(p) && !p.end && p.err == nil; i = 1 - i {
		if buffers[i] == nil {
			buffers[i] = make([]byte, 32<<10)
		}
		if p = readPart(resp.Body, buffers[i]); p.end {
			p.trailers = toHeaders(nil, resp.Trailer)
		}
	}
}

// attemptCount is the response header that tells the plugin, and the client, how many hosts were asked: Envoy's
// include_attempt_count_in_response.
const attemptCount = "x-envoy-attempt-count"

// attempt asks the hosts in their order until one answers: the next one has its turn where a host takes no connection, or
// cuts it before its response has begun, as Envoy's retry_on "connect-failure,reset" has it. The part says how many it
// asked, and why no one answered. Who answered counts the request as running until forward ends.
func (x *exchange) attempt(h hostsim.Headers, body *feed) (*http.Response, part) {
	list := ""
	if x.gateway.config.Host != nil {
		list = h.Value(x.gateway.config.TargetHeader)
	}
	failure := part{err: errNoHost, flags: flagNoHost}
	for i, host := range x.cluster.attempts(list, x.gateway.config.Attempts) {
		failure.attempts = i + 1
		asked := x.cluster.known[host]
		x.record.asked.Store(asked)
		x.record.attempts.Store(int32(i + 1))
		asked.requests.Add(1)
		asked.running.Add(1)
		x.filter.SetProperty("upstream.address", []byte(host))
		x.filter.SetProperty("upstream.request_attempt_count", hostsim.PropertyInt(int64(i+1)))
		resp, err := x.ask(host, h, body)
		if err == nil {
			asked.failed.Store(0)
			return resp, failure
		}
		asked.running.Add(-1)
		if x.ctx.Err() == nil && !errors.Is(err, errRequest) {
			asked.failed.Add(1)
		}
		failure = part{err: errReset, flags: flagReset, attempts: i + 1}
		connect := (*connectError)(nil)
		switch {
		case errors.Is(err, errRequest):
			failure.err = errRequest
			return nil, failure
		case errors.As(err, &connect):
			failure.err, failure.flags = errConnect, flagConnect
		}
		if x.ctx.Err() != nil || body != nil && !body.whole() {
			break
		}
	}
	return nil, failure
}

// ask sends the request to one host and waits for the beginning of its answer.
func (x *exchange) ask(host string, h hostsim.Headers, body *feed) (*http.Response, error) {
	request, err := upstreamRequest(x.ctx, host, h, x.gateway.config.TargetHeader)
	if err != nil {
		return nil, errRequest
	}
	if x.cluster.http2 {
		request.Header["Te"] = []string{"trailers"} // the gateway takes them, and gRPC servers ask for it
	}
	if body == nil {
		return x.roundTrip(request)
	}
	reader := body.reader(request)
	request.Body, request.ContentLength = reader, -1
	if n, err := strconv.ParseInt(h.Value("content-length"), 10, 64); err == nil && n >= 0 {
		request.ContentLength = n
	}
	resp, err := x.roundTrip(watch(request, reader))
	if err != nil {
		_ = reader.Close() // the transport does so too, but may take its time
	}
	return resp, err
}

// roundTrip is the transport's, but an upgrade, which no request asks for, is no answer.
func (x *exchange) roundTrip(r *http.Request) (*http.Response, error) {
	resp, err := x.gateway.of(x.cluster).RoundTrip(r)
	if err == nil && resp.StatusCode == http.StatusSwitchingProtocols {
		_ = resp.Body.Close()
		return nil, errReset
	}
	return resp, err
}

// upstreamRequest builds a request without a body for one host out of headers, all but skip.
func upstreamRequest(ctx context.Context, host string, h hostsim.Headers, skip string) (*http.Request, error) {
	target, err := url.ParseRequestURI(h.Value(":path"))
	if err != nil {
		return nil, err
	}
	target.Scheme, target.Host = "http", host
	r := &http.Request{Method: h.Value(":method"), URL: target, Host: h.Value(":authority"), Header: http.Header{},
		ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody}
	fromHeaders(r.Header, h, skip)
	if _, ok := r.Header["User-Agent"]; !ok {
		r.Header["User-Agent"] = nil // else the transport adds its own
	}
	return r.WithContext(ctx), nil
}

// readPart reads what there is, up to the buffer's size.
func readPart(from io.Reader, buffer []byte) part {
	n, err := from.Read(buffer)
	switch {
	case errors.Is(err, io.EOF):
		return part{data: buffer[:n], end: true}
	case err != nil && n == 0: // else the next read tells it again
		return part{err: err}
	}
	return part{data: buffer[:n]}
}
