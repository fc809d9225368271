package replay

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"testing"
)

func TestPercentiles(t *testing.T) {
	if got := percentiles(nil); len(got) != 0 || got == nil {
		t.Errorf("of nothing: %v", got)
	}
	if got := percentiles([]float32{3}); len(got) != 101 || got[0] != 3 || got[100] != 3 {
		t.Errorf("of one: %v", got)
	}
	values := make([]float32, 200)
	for i := range values {
		values[i] = float32(200 - i)
	}
	got := percentiles(values)
	if got[0] != 1 || got[1] != 2 || got[50] != 100 || got[99] != 198 || got[100] != 200 {
		t.Errorf("of 1 to 200: %v", got)
	}
}

func TestSpread(t *testing.T) {
	for _, c := range []struct {
		values           []float64
		maxMin, maxMean_ float64
	}{{[]float64{1, 2, 3}, 3, 1.5}, {[]float64{0, 4}, 0, 2}, {[]float64{0, 0}, 0, 0}} {
		if a, b := spread(c.values); a != c.maxMin || b != c.maxMean_ {
			t.Errorf("%v: %v, %v", c.values, a, b)
		}
	}
}

// The result's figures agree with the spans of the sessions, where all are kept.
func TestFiguresAgree(t *testing.T) {
	c := campaign(talks(slowest, 7, 130), 3)
	c.Clients = 3
	c.NewRouter, _ = Baseline(PerProcessCounter)
	r := play(t, c)
	var ttft, tpot, e2e, queue []float32
	moves, sum, cached, prompt := 0, 0., 0, 0
	visited := map[string]bool{}
	ends := []float64{}
	for i, s := range r.Slowest {
		for k, u := range s.Turns {
			ttft, e2e, queue = append(ttft, float32(u.First-u.Sent)), append(e2e, float32(u.End-u.Sent)), append(queue, float32(u.Admitted-u.Sent))
			tpot = append(tpot, float32((u.End-u.First)/3))
			cached, prompt = cached+u.Cached, prompt+u.Prompt
			visited[fmt.Sprint(s.Session, u.Replica)] = true
			if k > 0 && u.Replica != s.Turns[k-1].Replica {
				moves++
			}
		}
		last := s.Turns[len(s.Turns)-1].End
		ends, sum = append(ends, last), sum+last-s.Turns[0].Sent
		if i > 0 && ends[i] > ends[i-1] {
			t.Errorf("session %d of the slowest ends after the one before", i)
		}
	}
	slices.Sort(ends)
	sessions := 0
	for _, p := range r.Replicas {
		sessions += p.Sessions
	}
	if len(ends) != slowest || moves == 0 || r.Moves != moves || sessions != len(visited) {
		t.Errorf("%d sessions, %d moves (%d), %d visits (%d)", len(ends), r.Moves, moves, sessions, len(visited))
	}
	for _, c := range []struct {
		name      string
		got, want float64
	}{
		{"wall", r.Wall, ends[23]}, {"t95", r.T95, ends[22]}, {"mean", r.SessionMean, sum / slowest},
		{"hit rate", r.HitRate, float64(cached) / float64(prompt)},
		{"ttft p50", r.TTFTP50, percentiles(ttft)[50]}, {"tpot p99", r.TPOTP99, percentiles(tpot)[99]},
		{"e2e p99", r.E2EP99, percentiles(e2e)[99]}, {"queue p50", r.QueueP50, percentiles(queue)[50]},
	} {
		if math.Abs(c.got-c.want) > 2e-6 {
			t.Errorf("%s: %v, want %v", c.name, c.got, c.want)
		}
	}
	if r.KVUseMean <= 0 || r.KVUseMean >= r.KVUseMax || r.KVUseMax > 1 {
		t.Errorf("KV use: mean %v, max %v", r.KVUseMean, r.KVUseMax)
	}
}

// Of 20 sessions 95% have ended with the 19th.
func TestT95(t *testing.T) {
	r := play(t, campaign(talks(20, 3, 130), 3))
	if first, second := r.Slowest[0].Turns[2].End, r.Slowest[1].Turns[2].End; math.Abs(r.T95-second) > 2e-6 || first-second < 1e-3 {
		t.Errorf("t95 %v, want %v; the last session ends at %v", r.T95, second, first)
	}
}

// Sessions that use the memory of others inherit nothing, and those that ended last are kept, the last first.
func TestSlotsAreUsedAgain(t *testing.T) {
	c := campaign(talks(3*slowest+5, 3, 130), 3)
	c.Concurrency = 4
	r := play(t, c)
	visits := 0
	for _, p := range r.Replicas {
		visits += p.Sessions
	}
	if visits != 3*slowest+5 || len(r.Slowest) != slowest {
		t.Errorf("%d visits, %d spans", visits, len(r.Slowest))
	}
	end := millionth(r.Wall) // as spans are
	for i, s := range r.Slowest {
		last := s.Turns[len(s.Turns)-1].End
		if i == 0 && math.Abs(last-end) > 1e-6 || last > end+1e-6 || len(s.Turns) != 3 {
			t.Errorf("session %d of the slowest has %d turns and ends at %v, after %v", i, len(s.Turns), last, end)
		}
		end = last
	}
}

// Where nothing was served JSON has empty lists, and no null.
func TestNoNulls(t *testing.T) {
	c := campaign(talks(1, 1, 160), 1)
	c.Engine.Blocks = 1 // too few for any turn
	r := play(t, c)
	text, err := json.Marshal(r)
	if err != nil || r.Errors != 1 || bytes.Contains(text, []byte("null")) {
		t.Errorf("%d errors, %v: %s", r.Errors, err, text)
	}
	c.Sessions = open(nil)
	if text, err = json.Marshal(play(t, c)); err != nil || bytes.Contains(text, []byte("null")) {
		t.Errorf("%v: %s", err, text)
	}
}

// An answer of one token has no time per token.
func TestOneToken(t *testing.T) {
	sessions := talks(1, 2, 16)
	sessions[0].Turns[0].Output = 1
	if r := play(t, campaign(sessions, 1)); r.TPOTP50 < .004 || r.Latency.TPOT[0] != r.Latency.TPOT[100] {
		t.Errorf("time per token %v, from %v on", r.TPOTP50, r.Latency.TPOT[0])
	}
}
