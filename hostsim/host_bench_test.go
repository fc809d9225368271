package hostsim

import (
	"context"
	"testing"
)

// benchHeaders are those of the request in every benchmark.
var benchHeaders = Headers{{":method", "POST"}, {":path", "/v1/chat/completions"}, {":authority", "example.com"}, {"x-session-id", "s-1234567890"}}

// BenchmarkStream is one whole stream of five callbacks (request headers, response headers, log, done, delete) with a
// context creation, in a guest whose callbacks do nothing: the host's own cost.
func BenchmarkStream(b *testing.B) {
	h, err := New(context.Background(), Config{Wasm: guest(b, "mute")})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	benchStreams(b, h)
}

// benchStreams runs one stream after the other on one worker.
func benchStreams(b *testing.B, h *Host) {
	b.ReportAllocs()
	for b.Loop() {
		s := h.Worker(0).NewStream()
		if _, err := s.RequestHeaders(benchHeaders, true); err != nil {
			b.Fatal(err)
		}
		if _, err := s.ResponseHeaders(reply, true); err != nil {
			b.Fatal(err)
		}
		if err := s.End(EndNormal); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkStart is a host of one worker from compiled code in memory: four instances and their configuration.
func BenchmarkStart(b *testing.B) {
	wasm := guest(b, "mute")
	start := func() {
		h, err := New(context.Background(), Config{Wasm: wasm})
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	}
	start() // compiles
	b.ReportAllocs()
	for b.Loop() {
		start()
	}
}

// BenchmarkRestore is a request that counts in shared data, and the host of two workers set back to before it.
func BenchmarkRestore(b *testing.B) {
	p := newProbe(b, "request_headers sdadd count", func(c *Config) { c.Workers, c.LogLevel = 2, LogCritical })
	p.pass()
	before, err := p.Snapshot()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		p.pass()
		if err := p.Restore(before); err != nil {
			b.Fatal(err)
		}
	}
}
