package differential

import (
	"encoding/binary"
	"io"
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"
)

// grpcPeer is a gRPC server that the script plays, over HTTP/2 in clear text. It takes the steps of a server: headers begin
// its answer, data is a message, trailers end it.
type grpcPeer struct {
	actor    string
	t        *transcript
	listener net.Listener
	server   http.Server
	steps    chan act // has room for those of a call
}

// serveGRPC plays a gRPC server on a listener.
func serveGRPC(l net.Listener, actor string, t *transcript) *grpcPeer {
	p := &grpcPeer{actor: actor, t: t, listener: l, steps: make(chan act, 16)}
	p.server.Protocols = new(http.Protocols)
	p.server.Protocols.SetUnencryptedHTTP2(true)
	p.server.Handler = http.HandlerFunc(p.handle)
	go p.server.Serve(l)
	return p
}

func (p *grpcPeer) port() int { return p.listener.Addr().(*net.TCPAddr).Port }
func (p *grpcPeer) close()    { p.server.Close() }

func (p *grpcPeer) send(a act, _ string) error {
	p.steps <- a
	return nil
}

// handle notes a call as it comes in and meanwhile answers as the steps say.
func (p *grpcPeer) handle(w http.ResponseWriter, r *http.Request) {
	var headers [][2]string
	for _, name := range slices.Sorted(maps.Keys(r.Header)) {
		headers = append(headers, [2]string{strings.ToLower(name), r.Header.Get(name)})
	}
	p.t.wire(p.actor, showHeaders(r.Method+" "+r.URL.Path, withoutTransport(headers)))
	go p.hear(r.Body)
	for {
		select {
		case a := <-p.steps:
			if p.answer(w, a) {
				return
			}
		case <-r.Context().Done():
			p.t.wire(p.actor, "closed")
			return
		}
	}
}

// hear notes the messages of a call.
func (p *grpcPeer) hear(body io.Reader) {
	for {
		var prefix [5]byte // a byte for compression, the message's length
		if _, err := io.ReadFull(body, prefix[:]); err != nil {
			if err == io.EOF {
				p.t.wire(p.actor, "end")
			}
			return
		}
		message := make([]byte, binary.BigEndian.Uint32(prefix[1:]))
		if _, err := io.ReadFull(body, message); err != nil {
			return
		}
		p.t.wire(p.actor, "message "+string(message))
	}
}

// answer carries out a step, and reports whether it is the last.
func (p *grpcPeer) answer(w http.ResponseWriter, a act) (last bool) {
	h := w.Header()
	switch a.verb {
	case "headers":
		h["Date"] = nil
		h.Set("content-type", "application/grpc")
		for _, kv := range a.headers {
			h.Set(kv[0], kv[1])
		}
	case "data":
		frame := binary.BigEndian.AppendUint32([]byte{0}, uint32(len(a.data)))
		_, _ = w.Write(append(frame, a.data...)) // a call that has been closed shows in what it got
	case "trailers":
		for _, kv := range a.headers {
			h.Set(http.TrailerPrefix+kv[0], kv[1])
		}
		return true
	case "reset":
		panic(http.ErrAbortHandler)
	}
	if !a.end {
		_ = http.NewResponseController(w).Flush()
	}
	return a.end
}

// withoutTransport leaves out what any gRPC call has.
func withoutTransport(headers [][2]string) [][2]string {
	return slices.DeleteFunc(headers, func(kv [2]string) bool { return grpcTransport[kv[0]] })
}

var grpcTransport = map[string]bool{"content-type": true, "te": true, "grpc-timeout": true}
