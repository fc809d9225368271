package differential

import (
	"net"
	"strings"
	"sync"
)

// peer is one end of HTTP/1.1 that the script plays: a client's connection, or a server and the connection on which it
// was last asked.
type peer struct {
	actor string
	t     *transcript
	mu    sync.Mutex
	conn  net.Conn
	// hungUp is true when this end has closed conn.
	hungUp bool
	// answered is true when nothing is owed on conn, so that its end is none of a message.
	answered bool
	chunked  bool // of the message being sent
	listener net.Listener
}

// serve accepts connections until the listener is closed.
func (p *peer) serve() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		go p.read(conn, false)
	}
}

// read notes what comes in on a connection.
func (p *peer) read(conn net.Conn, bodyless bool) {
	server := p.listener != nil
	r := &reader{
		bodyless: bodyless,
		gotHeaders: func(start []string, headers [][2]string) {
			what := start[1]
			if server {
				what = start[0] + " " + start[1]
				p.mu.Lock()
				p.conn, p.answered, p.hungUp = conn, false, false
				p.mu.Unlock()
			}
			p.t.wire(p.actor, showHeaders(what, headers))
		},
		gotData: func(data []byte) { p.t.body(p.actor, data) },
		gotEnd: func(trailers [][2]string) {
			if !server {
				p.setAnswered()
			}
			p.t.wire(p.actor, strings.TrimSpace("end"+showHeaders("", trailers)))
		},
	}
	buf := make([]byte, 1<<16)
	for {
		n, err := conn.Read(buf)
		r.feed(buf[:n])
		if err != nil {
			break
		}
	}
	whole := r.closed()
	p.mu.Lock()
	cut := !p.hungUp && (p.conn == conn && !p.answered || !whole)
	p.mu.Unlock()
	if cut {
		p.t.wire(p.actor, "closed")
	}
	conn.Close()
}

func (p *peer) setAnswered() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answered = true
}

// send does what a step says. addr is where a client connects to.
func (p *peer) send(a act, addr string) error {
	if a.verb == "headers" && a.actor == "client" {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			return err
		}
		p.mu.Lock()
		p.conn, p.answered, p.hungUp = conn, false, false
		p.mu.Unlock()
		go p.read(conn, a.method == "HEAD")
	}
	p.mu.Lock()
	conn := p.conn
	p.mu.Unlock()
	if conn == nil {
		p.t.add(p.actor, line{text: p.actor + unasked})
		return nil
	}
	switch a.verb {
	case "close", "reset":
		p.mu.Lock()
		p.hungUp = true
		p.mu.Unlock()
		if tcp, ok := conn.(*net.TCPConn); ok && a.verb == "reset" {
			_ = tcp.SetLinger(0)
		}
		return conn.Close()
	}
	if p.listener != nil && (a.end || a.verb == "end" || a.verb == "trailers") {
		p.setAnswered()
	}
	_, _ = conn.Write(p.bytes(a)) // an end that has been closed shows in what it got
	return nil
}

// unasked follows the actor where a server is to send something that nobody waits for.
const unasked = " has nobody to answer"

// bytes are the step on the wire.
func (p *peer) bytes(a act) []byte {
	switch a.verb {
	case "data":
		if p.chunked {
			return chunk(a.data)
		}
		return a.data
	case "end":
		if p.chunked {
			return lastChunk(nil)
		}
		return nil
	case "trailers":
		return lastChunk(a.headers)
	}
	headers, sized := a.headers, false
	for _, kv := range headers {
		sized = sized || kv[0] == "content-length"
	}
	p.chunked = !a.end && !sized
	start := "HTTP/1.1 " + a.method + " X"
	if a.actor == "client" {
		start = a.method + " " + a.path + " HTTP/1.1"
		headers = append([][2]string{{"host", "example.com"}}, headers...)
	}
	switch {
	case p.chunked:
		headers = append(headers, [2]string{"transfer-encoding", "chunked"})
	case a.actor != "client" && !sized:
		headers = append(headers, [2]string{"content-length", "0"})
	}
	return head(start, headers)
}
