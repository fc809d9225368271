package replay

import (
	"fmt"
	"time"
)

// maxClock bounds each time of a campaign, and its clock: two recorded times of a trace fit, and four of it do not overflow.
const maxClock = 70 * 365 * 24 * time.Hour

// checkClock tells whether the clock can move on to at.
func (r *run) checkClock(at time.Duration) error {
	if at < r.now || at > maxClock {
		return fmt.Errorf("%w: its clock stands at %v and would pass 70 years: shorten the pauses, or the times of the trace", ErrCampaign, r.now)
	}
	return nil
}
