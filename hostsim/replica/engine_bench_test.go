package replica

import "testing"

// What one running request costs in a step in which nobody crosses a block's end: 64 of them decode.
func BenchmarkDecodeStep(b *testing.B) {
	const running = 64
	e := newTestEngine(b, EngineConfig{BlockTokens: 64, Blocks: 1 << 26, MaxBatchedTokens: 8192, MaxSequences: 256})
	for range running {
		submit(b, e, 0, &Request{Prompt: 100, Output: 60_000_000})
	}
	e.Start(0)
	e.End()
	b.ReportAllocs()
	for b.Loop() {
		if _, busy := e.Start(0); !busy {
			b.Fatal("idle")
		}
		e.End()
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/running, "ns/request")
}

// What a turn costs a block: it is found, held, and given back; a prompt of 80k tokens, all but one block known.
func BenchmarkTurn(b *testing.B) {
	const blocks = 1250
	e := newTestEngine(b, EngineConfig{BlockTokens: 64, Blocks: 200_000, MaxBatchedTokens: 1 << 20, MaxSequences: 256})
	// Other sessions fill the pool, so that every new block costs somebody his.
	for f := range 200 {
		submit(b, e, 0, &Request{Prompt: blocks * 64, Keys: keys(f+10, blocks)})
		run(e, 0)
	}
	r := &Request{Prompt: blocks*64 + 64, Output: 1, Keys: keys(1, blocks)}
	b.ReportAllocs()
	for b.Loop() {
		submit(b, e, 0, r)
		run(e, 0)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/blocks, "ns/block")
}

// What a cold turn costs a block: it is looked for in vain, taken from another session, filled, and given back.
func BenchmarkColdTurn(b *testing.B) {
	const blocks = 1250
	e := newTestEngine(b, EngineConfig{BlockTokens: 64, Blocks: 200_000, MaxBatchedTokens: 1 << 20, MaxSequences: 256})
	var requests []*Request
	for f := range 400 {
		requests = append(requests, &Request{Prompt: blocks * 64, Keys: keys(f, blocks)})
	}
	next := 0
	b.ReportAllocs()
	for b.Loop() {
		submit(b, e, 0, requests[next])
		run(e, 0)
		next = (next + 1) % len(requests)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/blocks, "ns/block")
}

// What it costs a step that a prompt waits for memory at the head of the queue, 1,250 of its blocks in the cache.
func BenchmarkBlockedStep(b *testing.B) {
	const blocks = 1250
	e := newTestEngine(b, EngineConfig{BlockTokens: 64, Blocks: 1 << 24, MaxBatchedTokens: 1 << 20, MaxSequences: 256})
	submit(b, e, 0, &Request{Prompt: blocks * 64, Keys: keys(1, blocks)})
	run(e, 0)
	submit(b, e, 0, &Request{Prompt: 1000, Output: 1 << 29}, &Request{Prompt: 1 << 30, Keys: keys(1, blocks)})
	b.ReportAllocs()
	for b.Loop() {
		e.Start(0)
		e.End()
	}
	if s := e.Stats(); s.Running != 1 || s.Waiting != 1 {
		b.Fatalf("%+v", s)
	}
}
