package gateway

import (
	"context"
	"net"
	"net/http"
	"net/http/httptrace"
	"sync"
	"time"
)

// transports give clusters their connections. Safe for concurrent use.
type transports struct{ http1, http2 *http.Transport }

func newTransports(dialTimeout time.Duration) transports {
	t := transports{http1: newTransport(dialTimeout), http2: newTransport(dialTimeout)}
	t.http2.Protocols = new(http.Protocols)
	t.http2.Protocols.SetUnencryptedHTTP2(true)
	return t
}

// of is the transport that speaks c's protocol.
func (t transports) of(c *cluster) *http.Transport {
	if c.http2 {
		return t.http2
	}
	return t.http1
}

func (t transports) closeIdle() {
	t.http1.CloseIdleConnections()
	t.http2.CloseIdleConnections()
}

func newTransport(dialTimeout time.Duration) *http.Transport {
	dialer := &net.Dialer{Timeout: dialTimeout}
	return &http.Transport{
		DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
			conn, err := dialer.DialContext(ctx, network, address)
			if err != nil {
				return nil, &connectError{err}
			}
			return &upstreamConn{Conn: conn, silent: make(chan struct{})}, nil
		},
		MaxIdleConnsPerHost: 256,
		// Below the 5 s after which uvicorn, and so most model servers, closes an idle connection: a request sent at that
		// moment would fail.
		IdleConnTimeout:    4 * time.Second,
		DisableCompression: true, // the client's own accept-encoding decides
	}
}

// upstreamConn tells when nothing more can come from the upstream. The HTTP/1 transport sees that too, but it first waits
// for the request's body to end, which may be in the hands of a client that waits.
type upstreamConn struct {
	net.Conn
	once   sync.Once
	silent chan struct{} // closed when a Read has failed
}

func (c *upstreamConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err != nil {
		c.once.Do(func() { close(c.silent) })
	}
	return n, err
}

// watch has r's body closed when its connection falls silent, as long as the body has not been closed.
func watch(r *http.Request, body *feedReader) *http.Request {
	return r.WithContext(httptrace.WithClientTrace(r.Context(), &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) {
		conn, ok := info.Conn.(*upstreamConn)
		if !ok {
			return
		}
		go func() {
			select {
			case <-conn.silent:
				_ = body.Close()
			case <-body.closed:
			case <-body.feed.ctx.Done():
			}
		}()
	}}))
}
