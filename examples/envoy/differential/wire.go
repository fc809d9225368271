package differential

import (
	"bytes"
	"fmt"
	"strconv"
	"strings"
)

// reader takes HTTP/1.1 messages apart as they come in, in any pieces.
type reader struct {
	// got hears of each part of a message: the start line's words and the headers; data; the end, with trailers if any.
	gotHeaders func(start []string, headers [][2]string)
	gotData    func([]byte)
	gotEnd     func(trailers [][2]string)

	bodyless bool // the next response has no body, whatever its headers say

	buf   []byte
	state int // one of the states below
	left  int // of the body or the chunk
	until bool
	inMsg bool
	err   error
}

const (
	readStart = iota
	readSized
	readChunkSize
	readChunk
	readTrailers
	readToClose
)

func (r *reader) feed(p []byte) {
	r.buf = append(r.buf, p...)
	for r.err == nil && r.advance() {
	}
}

// closed tells that no more will come. It returns true when that ends no message in the middle.
func (r *reader) closed() bool {
	if r.state == readToClose {
		r.end(nil)
	}
	return !r.inMsg
}

func (r *reader) end(trailers [][2]string) {
	r.state, r.inMsg = readStart, false
	r.gotEnd(trailers)
}

// block takes the lines up to an empty one off the buffer.
func (r *reader) block() (lines []string, ok bool) {
	if bytes.HasPrefix(r.buf, []byte("\r\n")) && r.state == readTrailers {
		r.buf = r.buf[2:]
		return nil, true
	}
	head, rest, ok := bytes.Cut(r.buf, []byte("\r\n\r\n"))
	if ok {
		lines, r.buf = strings.Split(string(head), "\r\n"), rest
	}
	return lines, ok
}

func (r *reader) advance() bool {
	switch r.state {
	case readStart:
		lines, ok := r.block()
		if ok {
			r.inMsg = true
			r.begin(lines)
		}
		return ok
	case readToClose, readSized, readChunk:
		return r.takeBody()
	case readChunkSize:
		size, rest, ok := bytes.Cut(r.buf, []byte("\r\n"))
		if !ok {
			return false
		}
		n, err := strconv.ParseInt(string(size), 16, 32)
		if err != nil {
			r.err = err
			return false
		}
		r.buf, r.left, r.state = rest, int(n), readChunk
		if n == 0 {
			r.state = readTrailers
		}
		return true
	}
	lines, ok := r.block()
	if ok {
		r.end(headerLines(lines))
	}
	return ok
}

func (r *reader) takeBody() bool {
	n := len(r.buf)
	if r.state != readToClose {
		n = min(n, r.left)
	}
	if n > 0 {
		r.gotData(r.buf[:n])
		r.buf, r.left = r.buf[n:], r.left-n
	}
	switch {
	case r.state == readSized && r.left == 0:
		r.end(nil)
		return true
	case r.state == readChunk && r.left == 0 && len(r.buf) >= 2:
		r.buf, r.state = r.buf[2:], readChunkSize
		return true
	}
	return false
}

func headerLines(lines []string) [][2]string {
	var out [][2]string
	for _, l := range lines {
		name, value, _ := strings.Cut(l, ":")
		out = append(out, [2]string{strings.ToLower(name), strings.TrimSpace(value)})
	}
	return out
}

func (r *reader) begin(lines []string) {
	start := strings.SplitN(lines[0], " ", 3)
	headers := headerLines(lines[1:])
	response := strings.HasPrefix(start[0], "HTTP/")
	size, chunked, sized := 0, false, false
	for _, kv := range headers {
		switch kv[0] {
		case "content-length":
			size, _ = strconv.Atoi(kv[1])
			sized = true
		case "transfer-encoding":
			chunked = true
		}
	}
	r.gotHeaders(start, headers)
	switch {
	case response && len(start[1]) == 3 && start[1][0] == '1':
		r.inMsg = false // another response follows
	case r.bodyless:
		r.end(nil)
	case chunked:
		r.state = readChunkSize
	case sized && size > 0:
		r.state, r.left = readSized, size
	case response && !sized && start[1] != "204" && start[1] != "304":
		r.state = readToClose
	default:
		r.end(nil)
	}
}

// head makes a message's head.
func head(start string, headers [][2]string) []byte {
	var b bytes.Buffer
	b.WriteString(start + "\r\n")
	for _, kv := range headers {
		fmt.Fprintf(&b, "%s: %s\r\n", kv[0], kv[1])
	}
	b.WriteString("\r\n")
	return b.Bytes()
}

func chunk(data []byte) []byte { return fmt.Appendf(nil, "%x\r\n%s\r\n", len(data), data) }

func lastChunk(trailers [][2]string) []byte {
	return append([]byte("0\r\n"), head("", trailers)[2:]...)
}
