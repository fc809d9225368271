package replay

import (
	"math"
	"testing"
	"time"
)

// Samples lie at even distances over the whole run, and together they know of all turns that were admitted before the last.
func TestSamples(t *testing.T) {
	for _, turns := range []int{1, 30, 250, 3000} {
		c := campaign(talks(3, turns, 16), 2)
		r := play(t, c)
		n := len(r.Samples)
		if n > maxSamples || n == 0 {
			t.Fatalf("%d samples", n)
		}
		distance := r.Samples[0].At
		for i, s := range r.Samples {
			if math.Abs(s.At-distance*float64(i+1)) > 1e-9 || len(s.Requests) != 2 || len(s.KVUse) != 2 {
				t.Fatalf("sample %d of %d: %+v; distance %v", i, n, s, distance)
			}
			if s.Open < 1 || s.Open > 3 || s.Requests[0]+s.Requests[1] > s.Open {
				t.Errorf("sample %+v", s)
			}
		}
		if last := r.Samples[n-1].At; last > r.Wall || last < r.Wall-distance-1e-9 {
			t.Errorf("last sample at %v of %v, distance %v", last, r.Wall, distance)
		}
		if turns > 250 && n < maxSamples/2 {
			t.Errorf("%d samples of %v s", n, r.Wall)
		}
	}
}

// Windows that are joined keep their tokens.
func TestThin(t *testing.T) {
	m := samples{distance: time.Second, asked: []int64{}, found: []int64{}}
	for i := range 5 {
		m.taken = append(m.taken, Sample{At: float64(i + 1)})
		m.admitted(time.Duration(i)*time.Second+500*time.Millisecond, 100, 10*i)
	}
	m.thin()
	got := m.result()
	if len(got) != 2 || got[0].At != 2 || got[1].At != 4 || got[0].HitRate != .05 || got[1].HitRate != .25 || got[1].PromptTokens != 200 || got[1].CachedTokens != 50 {
		t.Errorf("%+v", got)
	}
	m.admitted(4*time.Second, 300, 300) // in the window that has 100 already
	m.taken = append(m.taken, Sample{At: 6}, Sample{At: 8})
	if got = m.result(); got[2].HitRate != .85 || got[3].HitRate != -1 || got[2].PromptTokens != 400 || got[3].PromptTokens != 0 {
		t.Errorf("%+v", got)
	}
}

// A gap of days is no work.
func TestLongGap(t *testing.T) {
	sessions := talks(1, 2, 16)
	sessions[0].Turns[1].At = 1000 * time.Hour
	c := campaign(sessions, 1)
	c.OpenLoop = true
	if n := len(play(t, c).Samples); n < maxSamples/2 || n > maxSamples {
		t.Errorf("%d samples", n)
	}
}
