package gateway

import (
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// hopByHop are the headers that concern one connection only (RFC 9110, section 7.6.1), and expect, which the server has
// answered by the time that the request goes on.
var hopByHop = []string{"connection", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade", "expect"}

// toHeaders turns net/http's map into an ordered list without hop-by-hop headers. Names are sorted, because a map has no
// order and the plugin should see the same one each time; values of a name keep theirs.
func toHeaders(h hostsim.Headers, from http.Header) hostsim.Headers {
	skip := hopByHop
	for _, v := range from["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			skip = append(skip[:len(skip):len(skip)], strings.ToLower(strings.TrimSpace(name)))
		}
	}
	names := make([]string, 0, len(from))
	for name := range from {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		lower := strings.ToLower(name)
		if slices.Contains(skip, lower) {
			continue
		}
		for _, v := range from[name] {
			h = append(h, [2]string{lower, v})
		}
	}
	return h
}

// requestHeaders is the request as the plugin sees it.
func requestHeaders(r *http.Request) hostsim.Headers {
	path := r.RequestURI
	if r.URL.IsAbs() || path == "" {
		path = r.URL.RequestURI()
	}
	h := hostsim.Headers{{":authority", r.Host}, {":path", path}, {":method", r.Method}, {":scheme", "http"}}
	h = toHeaders(h, r.Header)
	if _, ok := h.Get("content-length"); !ok && r.ContentLength > 0 {
		h.Add("content-length", strconv.FormatInt(r.ContentLength, 10))
	}
	return h
}

// responseHeaders is the upstream's response as the plugin sees it.
func responseHeaders(resp *http.Response) hostsim.Headers {
	h := toHeaders(hostsim.Headers{{":status", strconv.Itoa(resp.StatusCode)}}, resp.Header)
	if _, ok := h.Get("content-length"); !ok && resp.ContentLength > 0 {
		h.Add("content-length", strconv.FormatInt(resp.ContentLength, 10))
	}
	return h
}

// fromHeaders fills net/http's map, without pseudo-headers and those of skip.
func fromHeaders(into http.Header, h hostsim.Headers, skip string) {
	for _, kv := range h {
		if kv[0] == "" || kv[0][0] == ':' || kv[0] == skip || slices.Contains(hopByHop, kv[0]) {
			continue
		}
		name := http.CanonicalHeaderKey(kv[0])
		into[name] = append(into[name], kv[1])
	}
}

// readBody starts the goroutine that carries the request's body. Two buffers take turns: a part is sent only when the one
// before it has been dealt with, so that the other buffer is free again.
func (x *exchange) readBody() {
	// HTTP/1 connections are read while the response is written only on demand; HTTP/2 ones always, and say so by an error.
	_ = x.out.EnableFullDuplex()
	if most := x.gateway.config.MaxBodyBytes; most > 0 {
		x.r.Body = http.MaxBytesReader(nil, x.r.Body, most)
	}
	if limit := x.gateway.config.IdleTimeout; limit > 0 {
		x.idle = time.NewTimer(limit)
	}
	incoming := make(chan part)
	x.incoming = incoming
	x.reading.Go(func() {
		var buffers [2][]byte
		for i := 0; ; i = 1 - i {
			if buffers[i] == nil {
				buffers[i] = make([]byte, 32<<10)
			}
			p := readPart(x.r.Body, buffers[i])
			if p.end {
				p.trailers = toHeaders(nil, x.r.Trailer)
			}
			select {
			case incoming <- p:
			case <-x.ctx.Done():
				return
			}
			if p.end || p.err != nil {
				return
			}
		}
	})
}

// writeHeaders sends the response's headers.
func (x *exchange) writeHeaders(h hostsim.Headers) {
	fromHeaders(x.w.Header(), h, "")
	if _, ok := h.Get("content-type"); !ok {
		x.w.Header()["Content-Type"] = nil // else net/http guesses one
	}
	code, err := strconv.Atoi(h.Value(":status"))
	if err != nil || code < 200 || code > 999 {
		code = http.StatusBadGateway
	}
	x.w.WriteHeader(code)
	x.begun = true
	x.record.Status = code
	x.tell(x.gateway.config.OnHeaders)
}

// writeTrailers sends what follows the response's body. HTTP/1 has room for it only where the length was not told before.
func (x *exchange) writeTrailers(h hostsim.Headers) {
	for _, kv := range h {
		x.w.Header().Add(http.TrailerPrefix+kv[0], kv[1])
	}
}

// write sends a piece of the response's body, at once if more may take its time to come. It is false when the client has
// gone.
func (x *exchange) write(data []byte, flush bool) bool {
	if limit := x.gateway.config.IdleTimeout; limit > 0 && x.r.ProtoMajor == 2 {
		x.stall.begin(x.out, limit)
		defer x.stall.end()
	}
	x.record.ResponseBytes += int64(len(data))
	if len(data) > 0 {
		if _, err := x.w.Write(data); err != nil && !errors.Is(err, http.ErrBodyNotAllowed) {
			return false
		}
	}
	return !flush || x.out.Flush() == nil
}
