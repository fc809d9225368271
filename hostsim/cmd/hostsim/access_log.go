package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
)

// accessLine is one request of the access log.
type accessLine struct {
	Time          string  `json:"time"` // when its headers had come
	Method        string  `json:"method"`
	Path          string  `json:"path"` // without the query, in which clients name sessions
	Status        int     `json:"status"`
	DurationMS    float64 `json:"duration_ms"`
	RequestBytes  int64   `json:"request_bytes"`
	ResponseBytes int64   `json:"response_bytes"`
	Session       string  `json:"session,omitempty"` // see sessionNames
	Cluster       string  `json:"cluster"`
	Upstream      string  `json:"upstream,omitempty"`
	Retries       int     `json:"retries"`
	Reason        string  `json:"reason,omitempty"`
	Detail        string  `json:"detail,omitempty"`
	End           string  `json:"end,omitempty"`
}

// ends are what became of requests that have no whole answer.
var ends = map[hostsim.EndReason]string{hostsim.EndClientGone: "client_gone", hostsim.EndUpstreamReset: "reset", hostsim.EndTimeout: "timeout"}

// accessLog writes a line for each request that has ended, each with one call. Safe for concurrent use.
type accessLog struct {
	path         string // empty: out is standard output
	names        *sessionNames
	reasonHeader string
	errs         io.Writer

	mu     sync.Mutex
	out    io.Writer
	file   *os.File // out, if it is ours
	failed bool     // the last write
	torn   bool     // the last line, which has begun and not ended
}

// openAccessLog opens a file to append to, or takes stdout for -.
func openAccessLog(path string, names *sessionNames, reasonHeader string, stdout, errs io.Writer) (*accessLog, error) {
	l := &accessLog{names: names, reasonHeader: reasonHeader, errs: errs, out: stdout}
	if path == "-" {
		return l, nil
	}
	l.path = path
	return l, l.reopen()
}

// reopen opens the file by its name again, after somebody has moved it away. When that fails the old one stays.
func (l *accessLog) reopen() error {
	if l.path == "" {
		return nil
	}
	// Without waiting: a pipe that nobody reads would hold up the start, or each later reload and the stop.
	file, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|syscall.O_NONBLOCK, 0o640)
	if err != nil {
		return fmt.Errorf("--access-log: %w", err)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.file != nil {
		_ = l.file.Close() // each line was written by then
	}
	l.file, l.out, l.failed, l.torn = file, file, false, false
	return nil
}

// close ends a log whose requests have all ended.
func (l *accessLog) close() {
	if l.file != nil {
		_ = l.file.Close()
	}
}

func (l *accessLog) write(a *gateway.Access) {
	text, err := json.Marshal(accessLine{
		Time: a.Began.UTC().Format("2006-01-02T15:04:05.000Z"), Method: a.Request.Method, Path: a.Request.URL.Path, Status: a.Status,
		DurationMS: float64(a.Duration.Round(time.Microsecond)) / 1e6, RequestBytes: a.RequestBytes, ResponseBytes: a.ResponseBytes,
		Session: l.names.hash(a.Request), Cluster: a.Cluster, Upstream: a.Upstream, Retries: max(a.Attempts-1, 0),
		Reason: a.Response.Get(l.reasonHeader), Detail: a.Detail, End: ends[a.End],
	})
	if err != nil {
		return // nothing here can fail
	}
	text = append(visible(text), '\n')
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.torn {
		text = append([]byte{'\n'}, text...) // the rest of a torn line is no part of this one
	}
	n, err := l.out.Write(text)
	if err != nil && !l.failed {
		fmt.Fprintf(l.errs, "hostsim: --access-log: %v: lines are lost until it can be written again\n", err)
	}
	l.failed = err != nil
	if n > 0 {
		l.torn = n < len(text)
	}
}

// visible escapes those control characters that JSON lets stand, DEL and C1 (U+0080 to U+009F), some of which steer
// terminals. The text is valid UTF-8.
func visible(line []byte) []byte {
	if !slices.ContainsFunc(line, func(b byte) bool { return b == 0x7f || b == 0xc2 }) { // C1 begins with the latter
		return line
	}
	out := make([]byte, 0, len(line)+16)
	for _, r := range string(line) {
		if r >= 0x7f && r < 0xa0 {
			out = fmt.Appendf(out, `\u%04x`, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}
