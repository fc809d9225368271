package hostsim

import (
	"bytes"
	"context"
	"io"
	"testing"
)

// BenchmarkStreamRecorded is a stream with the three host calls of a request that sticks to its upstream, with a recorder on
// that writes to nowhere; BenchmarkStream has the host's own part of it.
func BenchmarkStreamRecorded(b *testing.B) {
	h, err := New(context.Background(), Config{Wasm: guest(b, "mute"), PluginConfig: []byte("calls"), Recorder: NewRecorder(io.Discard, RecordOptions{})})
	if err != nil {
		b.Fatal(err)
	}
	defer h.Close()
	h.SharedData().Set("record", make([]byte, 1024), 0)
	benchStreams(b, h)
}

// BenchmarkCheck plays a recording of 1000 such streams; one operation is one stream.
func BenchmarkCheck(b *testing.B) {
	const streams = 1000
	var out bytes.Buffer
	h, err := New(context.Background(), Config{Wasm: guest(b, "mute"), PluginConfig: []byte("calls"), Recorder: NewRecorder(&out, RecordOptions{})})
	if err != nil {
		b.Fatal(err)
	}
	h.SharedData().Set("record", make([]byte, 1024), 0)
	for range streams {
		s := h.Worker(0).NewStream()
		_, err1 := s.RequestHeaders(get, true)
		_, err2 := s.ResponseHeaders(reply, true)
		if err1 != nil || err2 != nil || s.End(EndNormal) != nil {
			b.Fatal(err1, err2)
		}
	}
	if err := h.Close(); err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(out.Len()) / streams)
	b.ResetTimer()
	for n := 0; n < b.N; n += streams {
		if _, err := Check(context.Background(), guest(b, "mute"), bytes.NewReader(out.Bytes())); err != nil {
			b.Fatal(err)
		}
	}
}
