package hosttest

import (
	"sync/atomic"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// shownLog is the number of log entries that a test that failed shows.
const shownLog = 50

// show puts the last of the log into the test's output.
func show(t testing.TB, log []hostsim.LogEntry) {
	for _, e := range log[max(0, len(log)-shownLog):] {
		t.Logf("%s %s: %s", hostsim.ThreadName(e.Worker), e.Level, e.Message)
	}
}

// startLog keeps what is logged before there is a host to ask.
type startLog struct {
	entries []hostsim.LogEntry
	over    atomic.Bool
}

// before returns a hostsim.Config.Log that keeps entries until the start is over, and calls next, which may be nil.
func (s *startLog) before(next func(hostsim.LogEntry)) func(hostsim.LogEntry) {
	return func(e hostsim.LogEntry) {
		if !s.over.Load() {
			s.entries = append(s.entries, e)
		}
		if next != nil {
			next(e)
		}
	}
}
