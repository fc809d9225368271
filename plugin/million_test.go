package plugin

import (
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

const (
	millionStreams  = 1_000_000
	millionIDs      = 200_000
	millionSessions = 50_000 // max_sessions

	// goArena is what Go's heap takes from the host at a time: a difference of
	// less is no leak.
	goArena = 4 << 20
)

// higress-group/higress#3920, envoyproxy/envoy#28339, ai-dynamo/dynamo#14570: guest
// memory that only grew, a key for each session, an error for each session over the
// limit. A million streams of 200,000 sessions under a limit of 50,000: turns,
// releases, requests without a session, streams that end early; sessions expire
// and come back.
func TestAMillionStreamsInFlatMemory(t *testing.T) {
	g := startGateway(t, 2, replicas(8)+fmt.Sprintf(`,"session":{"max_sessions":%d,"idle_timeout":"30s"}`, millionSessions))
	reasons := [2]map[string]int{{}, {}}
	run := func(streams int) {
		var done atomic.Int64
		g.hammer(func(w int) {
			rng := rand.New(rand.NewPCG(uint64(w), uint64(streams)))
			for i := range streams / 2 {
				g.life(w, rng, reasons[w])
				if n := done.Add(1); n%10_000 == 0 {
					g.Advance(tick)
				}
				if i%10_000 == 0 {
					// A session on the move counts at both ends for a moment.
					if n := g.sessions("default"); n > millionSessions+g.Workers() {
						t.Errorf("%d sessions open, the limit is %d", n, millionSessions)
					}
				}
			}
		})
	}
	run(millionStreams / 10)
	memory, keys := [2]uint64{g.Worker(0).Memory(), g.Worker(1).Memory()}, g.SharedData().Len()
	run(millionStreams - millionStreams/10)
	for w := range memory {
		if now := g.Worker(w).Memory(); now > memory[w]+goArena || now > 32<<20 {
			t.Errorf("worker %d has %d bytes, it had %d after a tenth of the streams", w, now, memory[w])
		}
		if n := g.Worker(w).OpenStreams(); n != 0 {
			t.Errorf("worker %d: %d streams open", w, n)
		}
	}
	// A key for each shard, and a handful for the pool; a worker's own comes with
	// its first tick that finds it busy.
	shards := int(g.record("default").shards)
	if n := g.SharedData().Len(); n > keys+g.Workers() || n > shards+8 {
		t.Errorf("%d keys, %d after a tenth of the streams, %d shards", n, keys, shards)
	}
	if n, most := g.SharedData().Bytes(), millionSessions*pinSize+keys*64; n > most {
		t.Errorf("%d bytes in shared data, want at most %d", n, most)
	}
	for _, reason := range []string{"placed", "pinned", "keyless", "table_full", "expired"} {
		if reasons[0][reason]+reasons[1][reason] == 0 {
			t.Errorf("the traffic had no %s turn: %v", reason, reasons)
		}
	}
	if reasons[0]["error"]+reasons[1]["error"] > 0 {
		t.Errorf("errors: %v", reasons)
	}
	g.Advance(2 * time.Minute)
	g.mustOpen(0, 0, 0, 0, 0, 0, 0, 0)
	g.mustRun(0)
}

// life runs one stream from its first callback to its last.
func (g *gateway) life(worker int, rng *rand.Rand, reasons map[string]int) {
	id := fmt.Sprint("session-", rng.IntN(millionIDs))
	draw := rng.IntN(100)
	if draw < 5 {
		id = ""
	}
	h := turnHeaders(id)
	if id != "" && draw < 15 {
		h.Set(":path", "/finish_session")
	}
	s := g.Worker(worker).NewStream()
	if draw == 99 { // ended before any header
		g.end(s, hostsim.EndClientGone)
		return
	}
	step, err := s.RequestHeaders(h, true)
	if err == nil && step.Flow == hostsim.Forward && draw != 98 {
		_, err = s.ResponseHeaders(okHeaders, draw%2 == 0)
		reasons[s.Headers(hostsim.MapResponseHeaders).Value("x-pinwheel-reason")]++
	}
	if err != nil {
		g.t.Error(err)
	}
	g.end(s, hostsim.EndReason(draw%4))
}
