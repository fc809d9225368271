package replay

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

func TestPause(t *testing.T) {
	cases := []struct {
		c              Campaign
		recorded, want time.Duration
	}{
		{Campaign{}, time.Second, 0},
		{Campaign{Think: ThinkNone}, time.Second, 0},
		{Campaign{Think: ThinkRecorded}, time.Second, time.Second},
		{Campaign{Think: ThinkRecorded}, time.Hour, time.Minute},
		{Campaign{Think: ThinkRecorded}, -time.Second, 0},
		{Campaign{Think: ThinkRecorded, TimeScale: .5}, time.Hour, 30 * time.Second},
		{Campaign{Think: ThinkRecorded, TimeScale: 2, ThinkCap: 3 * time.Second}, 10 * time.Second, 6 * time.Second},
	}
	for _, c := range cases {
		full := c.c.withDefaults()
		if got := full.pause(c.recorded, nil); got != c.want {
			t.Errorf("%+v after %v: %v, want %v", c.c, c.recorded, got, c.want)
		}
	}
}

// The draws have the shares and medians that they were made from.
func TestDrawRL(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	const n = 200_000
	draws := make([]time.Duration, n)
	for i := range draws {
		draws[i] = drawRL(random)
	}
	slices.Sort(draws)
	if last := draws[n-1]; last != rlCap {
		t.Errorf("longest %v, want %v", last, rlCap)
	}
	normal := func(z float64) float64 { return math.Erfc(-z/math.Sqrt2) / 2 }
	for _, x := range []float64{.1, .4, 1, 4, 8, 20, 90, 300} {
		want := .85*normal(math.Log(x/.4)/.8) + .13*normal(math.Log(x/8)) + .02*normal(math.Log(x/90))
		below, _ := slices.BinarySearch(draws, time.Duration(x*float64(time.Second)))
		if got := float64(below) / n; math.Abs(got-want) > .005 {
			t.Errorf("%v are below %v s, want %v", got, x, want)
		}
	}
}

// Turns are sent when they were recorded, unless the turn before is not done yet.
func TestOpenLoop(t *testing.T) {
	sessions := talks(3, 3, 32)
	for i := range sessions {
		sessions[i].Start = time.Duration(i) * 700 * time.Millisecond
		sessions[i].Turns[2].At = sessions[i].Turns[1].At
	}
	c := campaign(sessions, 1)
	c.OpenLoop, c.TimeScale = true, 2
	for c.Seed = range 5 { // which shuffle nothing here
		for _, s := range play(t, c).Slowest {
			i := int(s.Session[1] - '0')
			start := 1.4 * float64(i)
			if s.Turns[0].Sent != start || s.Turns[1].Sent != start+2 || s.Turns[2].Sent != s.Turns[1].End {
				t.Errorf("seed %d, session %s: sent at %v, %v, %v", c.Seed, s.Session, s.Turns[0].Sent, s.Turns[1].Sent, s.Turns[2].Sent)
			}
		}
	}
}

func TestRamp(t *testing.T) {
	c := campaign(talks(20, 1, 32), 20)
	c.Ramp = 10 * time.Second
	sent := []float64{}
	for _, s := range play(t, c).Slowest {
		sent = append(sent, s.Turns[0].Sent)
	}
	slices.Sort(sent)
	if len(sent) != 20 || sent[0] > 3 || sent[19] < 7 || sent[19] > 10.1 {
		t.Errorf("sent at %v", sent)
	}
}
