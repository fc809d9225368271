package replay

import (
	"encoding/json"
	"math"
	"regexp"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// A result is JSON also where nothing was played: no number is infinite or none.
func TestNothingIsJSON(t *testing.T) {
	for name, sessions := range map[string][]trace.Session{"no session": nil, "no tokens generated": {talk("a", 1, 1, 16)}} {
		for i := range sessions {
			sessions[i].Turns[0].Output = 0
		}
		r := play(t, campaign(sessions, 3))
		if _, err := json.Marshal(r); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if sessions == nil && (r.Turns != 0 || r.HitRate != 0 || r.BusyMaxMean != 0 || len(r.Latency.TTFT) != 0) {
			t.Errorf("%s: %+v", name, r)
		}
	}
}

// No sample, percentile or span has more than six decimals, and rounding keeps the order of a turn's times.
func TestMillionths(t *testing.T) {
	r := play(t, campaign(talks(9, 30, 130), 3))
	text, err := json.Marshal([]any{r.Samples, r.Latency, r.Slowest, r.Replicas})
	if err != nil {
		t.Fatal(err)
	}
	if long := regexp.MustCompile(`[0-9.]*\.[0-9]{7,}[0-9e-]*`).FindAll(text, 5); long != nil {
		t.Errorf("numbers %s", long)
	}
	for _, s := range r.Slowest {
		for _, u := range s.Turns {
			if u.Admitted < u.Sent || u.First < u.Admitted || u.End < u.First {
				t.Errorf("turn %+v", u)
			}
		}
	}
	if v := millionth(1.23456749); math.Abs(v-1.234567) > 1e-12 || millionth(-1) != -1 {
		t.Error(v)
	}
}
