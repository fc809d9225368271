package replay

import (
	"errors"
	"math"
	"testing"
	"time"
)

// A clock that would run over is an error, whatever makes it: a sum that overflows is a time before now, at which
// everything happens at once.
func TestClockThatRunsOver(t *testing.T) {
	long := talks(1, 400, 160)
	for i := range long[0].Turns {
		long[0].Turns[i].Think = 1e9 * time.Second
	}
	for name, change := range map[string]func(*Campaign){
		"pauses":       func(c *Campaign) { c.Think, c.ThinkCap = ThinkRecorded, 1e9*time.Second },
		"scaled":       func(c *Campaign) { c.Think, c.TimeScale = ThinkRecorded, 1e6 },
		"open loop":    func(c *Campaign) { c.OpenLoop, c.TimeScale = true, 1e6; long[0].Turns[399].At = 1e9 * time.Second },
		"overhead":     func(c *Campaign) { c.Overhead = math.MaxInt64 },
		"jitter":       func(c *Campaign) { c.Jitter = math.MaxInt64 },
		"ramp":         func(c *Campaign) { c.Ramp = math.MaxInt64 },
		"cap of pause": func(c *Campaign) { c.ThinkCap = math.MaxInt64 },
		"step":         func(c *Campaign) { c.Engine.Step = steady(math.MaxInt64 - time.Second) },
	} {
		c := campaign(long, 1)
		c.Engine.Blocks = 10_000
		change(&c)
		if r, err := Run(t.Context(), c); !errors.Is(err, ErrCampaign) {
			t.Errorf("%s: %v, wall %v", name, err, r.Wall)
		}
	}
}
