package gateway

import (
	"errors"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

var (
	errOverload = errors.New("overload")
	errTooLarge = errors.New("request payload too large")
	errIdle     = errors.New("stream idle timeout")
)

// flagIdle is what the property response.flags answers of errIdle. Source: Envoy, StreamIdleTimeout.
const flagIdle = 1 << 16

// admit says why a request is refused before the plugin hears of it. Else it counts it in: it is to be counted out of
// g.admitted.
func (g *Gateway) admit(r *http.Request) error {
	if most := g.config.MaxBodyBytes; most > 0 && r.ContentLength > most {
		return errTooLarge
	}
	if n := g.admitted.Add(1); g.config.MaxRequests > 0 && n > int64(g.config.MaxRequests) {
		g.admitted.Add(-1)
		return errOverload
	}
	return nil
}

// refuseEarly answers a request that is not admitted, without the plugin.
func (x *exchange) refuseEarly() hostsim.EndReason {
	body := x.refused.Error() + "\n"
	headers := localHeaders(http.StatusRequestEntityTooLarge, body)
	if x.refused == errOverload {
		headers = append(localHeaders(http.StatusServiceUnavailable, body), [2]string{"retry-after", "1"})
	}
	x.explain(x.refused)
	x.writeHeaders(headers)
	if !x.write([]byte(body), false) {
		return hostsim.EndClientGone
	}
	x.answered = true
	return hostsim.EndNormal
}

// localHeaders are those of an answer in text.
func localHeaders(status int, body string) hostsim.Headers {
	return hostsim.Headers{{":status", strconv.Itoa(status)}, {"content-type", "text/plain"}, {"content-length", strconv.Itoa(len(body))}}
}

// late is what a request is refused with whose upload stands still.
func late() part {
	return part{err: errIdle, status: http.StatusRequestTimeout, flags: flagIdle}
}

// limitListener holds connections to a number and to a time in which each takes what is written to it. Further ones wait
// in the kernel's queue until one closes.
type limitListener struct {
	net.Listener
	idle   time.Duration // 0: no bound
	places chan struct{} // nil: no bound
	once   sync.Once
	closed chan struct{}
}

func newLimitListener(ln net.Listener, connections int, idle time.Duration) *limitListener {
	l := &limitListener{Listener: ln, idle: idle, closed: make(chan struct{})}
	if connections > 0 {
		l.places = make(chan struct{}, connections)
	}
	return l
}

func (l *limitListener) Accept() (net.Conn, error) {
	if l.places != nil {
		select {
		case l.places <- struct{}{}:
		case <-l.closed:
			return nil, net.ErrClosed
		}
	}
	conn, err := l.Listener.Accept()
	if err != nil {
		l.leave()
		return nil, err
	}
	return &limitedConn{Conn: conn, listener: l}, nil
}

func (l *limitListener) leave() {
	if l.places != nil {
		<-l.places
	}
}

// Close ends an Accept that waits for a place too.
func (l *limitListener) Close() error {
	l.once.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

type limitedConn struct {
	net.Conn
	listener *limitListener
	once     sync.Once
}

// Write fails where the client takes nothing for the idle time.
func (c *limitedConn) Write(p []byte) (int, error) {
	if c.listener.idle > 0 {
		_ = c.SetWriteDeadline(time.Now().Add(c.listener.idle)) // where that fails, so does Write
	}
	return c.Conn.Write(p)
}

func (c *limitedConn) Close() error {
	c.once.Do(c.listener.leave)
	return c.Conn.Close()
}

// CloseWrite is how net/http lets a client read an early answer before the connection goes.
func (c *limitedConn) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

// stallWatch ends a write for which an HTTP/2 client makes no room on its stream, as limitedConn does it for whole
// connections.
type stallWatch struct {
	timer *time.Timer
	mu    sync.Mutex
	until time.Time // how long the write under way may take; zero without one, when a response's writer may be gone
}

// begin watches the write that follows; end is to be called after it.
func (s *stallWatch) begin(out *http.ResponseController, limit time.Duration) {
	s.mu.Lock()
	s.until = time.Now().Add(limit)
	s.mu.Unlock()
	if s.timer != nil {
		s.timer.Reset(limit)
		return
	}
	s.timer = time.AfterFunc(limit, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if !s.until.IsZero() && !time.Now().Before(s.until) { // and not the next write, begun as the timer fired
			_ = out.SetWriteDeadline(time.Unix(1, 0)) // HTTP/2 has it
		}
	})
}

func (s *stallWatch) end() {
	s.timer.Stop()
	s.mu.Lock()
	s.until = time.Time{}
	s.mu.Unlock()
}
