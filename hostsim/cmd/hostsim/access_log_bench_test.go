package main

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
	"github.com/pinwheel-proxy/pinwheel/hostsim/livepage"
)

// What a request costs more with an access log in a file, and with the page, nobody looking.
func BenchmarkOperation(b *testing.B) {
	names := newSessionNames([]string{"x-session-id"})
	a := &gateway.Access{Request: &http.Request{Method: "POST", URL: &url.URL{Path: "/v1/chat/completions"}, Header: http.Header{"X-Session-Id": {"session-17"}}},
		Response: http.Header{"X-Pinwheel-Reason": {"pinned"}}, Began: time.Now(), Duration: time.Second, Status: 200, Cluster: "vllm", Upstream: "127.0.0.1:8001", Attempts: 1}
	b.Run("access log", func(b *testing.B) {
		l, err := openAccessLog(filepath.Join(b.TempDir(), "access.jsonl"), names, "x-pinwheel-reason", io.Discard, os.Stderr)
		if err != nil {
			b.Fatal(err)
		}
		b.ReportAllocs()
		for b.Loop() {
			l.write(a)
		}
	})
	b.Run("page", func(b *testing.B) {
		p := livepage.New(livepage.Config{Session: names.hash, ReasonHeader: "x-pinwheel-reason"})
		b.ReportAllocs()
		for b.Loop() {
			p.Headers(a)
			p.End(a)
		}
	})
}
