package hostsim

import (
	"context"
	"testing"
	"time"
)

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
	headers := Headers{{":method", "POST"}, {":path", "/v1/chat/completions"}, {":authority", "example.com"}, {"x-session-id", "s-1234567890"}}
	b.ReportAllocs()
	for b.Loop() {
		s := h.Worker(0).NewStream()
		if _, err := s.RequestHeaders(headers, true); err != nil {
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

// BenchmarkStreamWithCalls is the same with the host calls of a sticky turn: read a header, read a shared record of 1 KB,
// write a header.
func BenchmarkStreamWithCalls(b *testing.B) {
	h, err := New(context.Background(), Config{Wasm: guest(b, "mute"), PluginConfig: []byte("calls")})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	h.SharedData().Set("record", make([]byte, 1024), 0)
	benchStreams(b, h)
}

// BenchmarkStreamWithCallTimeout is BenchmarkStreamWithCalls under Config.CallTimeout.
func BenchmarkStreamWithCallTimeout(b *testing.B) {
	h, err := New(context.Background(), Config{Wasm: guest(b, "mute"), PluginConfig: []byte("calls"), CallTimeout: time.Minute})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	h.SharedData().Set("record", make([]byte, 1024), 0)
	benchStreams(b, h)
}

// BenchmarkStart is a host of one worker from compiled code in memory: four instances and their configuration.
func BenchmarkStart(b *testing.B) {
	wasm := guest(b, "mute")
	b.ReportAllocs()
	for b.Loop() {
		h, err := New(context.Background(), Config{Wasm: wasm})
		if err != nil {
			b.Fatal(err)
		}
		if err := h.Close(); err != nil {
			b.Fatal(err)
		}
	}
}
