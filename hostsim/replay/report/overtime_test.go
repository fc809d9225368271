package report

import (
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// The hit rate of a stretch of time is that of its tokens: a sample of few turns weighs little, one without turns nothing.
func TestHitOverTime(t *testing.T) {
	s := &replay.SeedResult{}
	for i := range 64 { // two samples a stretch
		v := replay.Sample{At: float64(i), HitRate: 1, PromptTokens: 100, CachedTokens: 100}
		if i%2 == 1 {
			v.HitRate, v.PromptTokens, v.CachedTokens = 0, 300, 0
		}
		if i >= 62 {
			v = replay.Sample{At: float64(i), HitRate: -1}
		}
		s.Samples = append(s.Samples, v)
	}
	got := hitOverTime(s)
	if len(got) != 32 || !got[31].none {
		t.Fatalf("%+v", got)
	}
	for i, v := range got[:31] {
		if v.none || v.v != 25 || v.at != float64(2*i+1) {
			t.Errorf("stretch %d: %+v, want 25%%", i, v)
		}
	}
}
