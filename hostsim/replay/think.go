package replay

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// Think is how long a session waits between an answer and its next turn.
type Think string

const (
	// ThinkNone sends the next turn at once, as the published campaigns do. Empty means the same.
	ThinkNone Think = "none"
	// ThinkRecorded waits as long as recorded, at most ThinkCap, times TimeScale.
	ThinkRecorded Think = "recorded"
	// ThinkRL draws from rlSandbox.
	ThinkRL Think = "rl"
)

func (t Think) validate() error {
	switch t {
	case "", ThinkNone, ThinkRecorded, ThinkRL:
		return nil
	}
	return fmt.Errorf("%w: Think is %q: none, recorded or rl", ErrCampaign, string(t))
}

// rlSandbox is how long the tools of a reinforcement-learning sandbox take: most calls are file reads and greps, some are
// builds, few are whole test suites. It is an assumption, no measurement: logarithms are normal, medians are in seconds.
var rlSandbox = [...]struct{ share, median, sigma float64 }{
	{.85, .4, .8},
	{.13, 8, 1},
	{.02, 90, 1},
}

// rlCap bounds what rlSandbox draws.
const rlCap = 600 * time.Second

func drawRL(r *rand.Rand) time.Duration {
	u, k := r.Float64(), 0
	for k < len(rlSandbox)-1 && u >= rlSandbox[k].share {
		u -= rlSandbox[k].share
		k++
	}
	s := rlSandbox[k].median * math.Exp(rlSandbox[k].sigma*r.NormFloat64())
	return min(time.Duration(s*float64(time.Second)), rlCap)
}

// pause is the time between an answer and the turn after which recorded was recorded.
func (c *Campaign) pause(recorded time.Duration, r *rand.Rand) time.Duration {
	switch c.Think {
	case ThinkRecorded:
		return c.scale(min(max(recorded, 0), c.ThinkCap))
	case ThinkRL:
		return drawRL(r)
	}
	return 0
}

func (c *Campaign) scale(d time.Duration) time.Duration {
	if c.TimeScale == 1 {
		return d
	}
	return time.Duration(min(float64(d)*c.TimeScale, 2*float64(maxClock)))
}

// answered is when t's answer was complete, from the start of the outermost parent, as far as it was recorded.
func answered(s *trace.Session, turn int) time.Duration {
	return s.Start + s.Turns[turn].At + s.Turns[turn].API
}
