package main

import (
	"bufio"
	"bytes"
	"fmt"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
	"time"
)

// Headers between the load and the replicas.
const (
	delayHeader  = "x-soak-delay-ms"  // how long the answer is to take
	streamHeader = "x-soak-stream-ms" // how long the body is to come behind the headers
	servedHeader = "x-served-by"      // the replica's position in the list
)

const answerBody = "{}"

// replica is a stand-in model server that costs next to nothing and keeps nothing: envoytest.Replica records every request.
type replica struct {
	addr     string
	answer   []byte
	answered atomic.Uint64 // answers that it wrote, or tried to

	mu       sync.Mutex
	listener net.Listener // nil while it is dead
	conns    map[net.Conn]struct{}
}

// openReplica listens on addr, host:port; position is its place in the list.
func openReplica(addr string, position int) (*replica, error) {
	const body = answerBody
	r := &replica{addr: addr, conns: map[net.Conn]struct{}{}}
	r.answer = fmt.Appendf(nil, "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n%s: %d\r\ncontent-length: %d\r\n\r\n%s",
		servedHeader, position, len(body), body)
	return r, r.reopen()
}

// reopen listens again.
func (r *replica) reopen() error {
	l, err := net.Listen("tcp", r.addr)
	if err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.listener = l
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			r.mu.Lock()
			alive := r.listener == l
			if alive {
				r.conns[conn] = struct{}{}
			}
			r.mu.Unlock()
			if !alive {
				reset(conn)
				return
			}
			go r.serve(conn)
		}
	}()
	return nil
}

// kill refuses connections from now on and resets those that are open.
func (r *replica) kill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.listener != nil {
		r.listener.Close()
	}
	r.listener = nil
	for conn := range r.conns {
		reset(conn)
	}
	clear(r.conns)
}

func reset(conn net.Conn) {
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	conn.Close()
}

func (r *replica) serve(conn net.Conn) {
	defer func() {
		r.mu.Lock()
		delete(r.conns, conn)
		r.mu.Unlock()
		conn.Close()
	}()
	in := bufio.NewReader(conn)
	body, delay, stream := 0, 0, 0
	for {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return
		}
		if size, ok := bytes.CutPrefix(line, []byte("content-length: ")); ok {
			body, _ = strconv.Atoi(string(bytes.TrimSpace(size)))
		} else if ms, ok := bytes.CutPrefix(line, []byte(delayHeader+": ")); ok {
			delay, _ = strconv.Atoi(string(bytes.TrimSpace(ms)))
		} else if ms, ok := bytes.CutPrefix(line, []byte(streamHeader+": ")); ok {
			stream, _ = strconv.Atoi(string(bytes.TrimSpace(ms)))
		}
		if len(line) > 2 {
			continue
		}
		if _, err := in.Discard(body); err != nil {
			return
		}
		time.Sleep(time.Duration(delay) * time.Millisecond)
		r.answered.Add(1)
		rest := r.answer
		if stream > 0 {
			head := len(rest) - len(answerBody)
			if _, err := conn.Write(rest[:head]); err != nil {
				return
			}
			rest = rest[head:]
			time.Sleep(time.Duration(stream) * time.Millisecond)
		}
		if _, err := conn.Write(rest); err != nil {
			return
		}
		body, delay, stream = 0, 0, 0
	}
}
