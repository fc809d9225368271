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
func (x *exchange) forward(h hostsim.Headers, body *feedReader, answer chan<- part) {
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
	defer resp.Body.Close()
	var buffers [2][]byte
	p := part{headers: responseHeaders(resp), end: resp.Body == http.NoBody}
	p.headers.Set(attemptCount, strconv.Itoa(failure.attempts))
	for i := 0; send(p) && !p.end && p.err == nil; i = 1 - i {
		if buffers[i] == nil {
			buffers[i] = make([]byte, 32<<10)
		}
		p = readPart(resp.Body, buffers[i])
	}
}

// attemptCount is the response header that tells the plugin, and the client, how many hosts were asked: Envoy's
// include_attempt_count_in_response.
const attemptCount = "x-envoy-attempt-count"

// attempt tries the hosts in their order until one answers. The part says how many it asked, and why no one did.
func (x *exchange) attempt(h hostsim.Headers, body *feedReader) (*http.Response, part) {
	list := ""
	if x.gateway.config.Host != nil {
		list = h.Value(x.gateway.config.TargetHeader)
	}
	failure := part{err: errNoHost, flags: flagNoHost}
	for i, host := range x.cluster.attempts(list, x.gateway.config.Attempts) {
		failure.attempts = i + 1
		x.filter.SetProperty("upstream.address", []byte(host))
		x.filter.SetProperty("upstream.request_attempt_count", hostsim.PropertyInt(int64(i+1)))
		request, err := x.requestTo(host, h, body)
		if err != nil {
			return nil, part{err: errRequest, flags: flagReset, attempts: i + 1}
		}
		resp, err := x.gateway.transport.RoundTrip(request)
		if err == nil {
			return resp, failure
		}
		if connect := (*connectError)(nil); !errors.As(err, &connect) || x.ctx.Err() != nil {
			return nil, part{err: errReset, flags: flagReset, attempts: i + 1}
		}
		failure = part{err: errConnect, flags: flagConnect, attempts: i + 1}
	}
	return nil, failure
}

// requestTo builds the request for one host out of the headers as the plugin left them.
func (x *exchange) requestTo(host string, h hostsim.Headers, body *feedReader) (*http.Request, error) {
	target, err := url.ParseRequestURI(h.Value(":path"))
	if err != nil {
		return nil, err
	}
	target.Scheme, target.Host = "http", host
	r := &http.Request{Method: h.Value(":method"), URL: target, Host: h.Value(":authority"), Header: http.Header{},
		ProtoMajor: 1, ProtoMinor: 1, Body: http.NoBody}
	fromHeaders(r.Header, h, x.gateway.config.TargetHeader)
	if _, ok := r.Header["User-Agent"]; !ok {
		r.Header["User-Agent"] = nil // else the transport adds its own
	}
	if body != nil {
		r.Body, r.ContentLength = body, -1
		if n, err := strconv.ParseInt(h.Value("content-length"), 10, 64); err == nil && n >= 0 {
			r.ContentLength = n
		}
	}
	return r.WithContext(x.ctx), nil
}

// feedReader is a request's body as the transport reads it. Closing it does nothing: after a failed connection the next
// attempt reads it, from the beginning, for nothing has been read yet.
type feedReader struct {
	ctx    context.Context
	chunks <-chan []byte
	rest   []byte
}

func (f *feedReader) Read(p []byte) (int, error) {
	for len(f.rest) == 0 {
		select {
		case chunk, ok := <-f.chunks:
			if !ok {
				return 0, io.EOF
			}
			f.rest = chunk
		case <-f.ctx.Done():
			return 0, f.ctx.Err()
		}
	}
	n := copy(p, f.rest)
	f.rest = f.rest[n:]
	return n, nil
}

func (f *feedReader) Close() error { return nil }

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
