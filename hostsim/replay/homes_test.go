package replay

import (
	"context"
	"testing"
	"time"
)

// A session's homes are the replicas that served it, without those that took the place of a lost one; one gateway has no figure.
func TestHomesPerSession(t *testing.T) {
	second := func(e Event, at time.Duration) Event {
		e.At = at * time.Second
		return e
	}
	const none, both = 0, 2
	for _, c := range []struct {
		name     string
		gateways int
		replicas [2]int // that each gateway names
		schedule []Event
		want     float64
	}{
		{"one gateway", 1, [2]int{0, 1}, nil, none},
		{"they agree", 2, [2]int{1, 1}, nil, 1},
		{"they do not", 2, [2]int{0, 1}, nil, both},
		{"lost by both", 2, [2]int{0, 0}, []Event{second(Event{Kind: EventFail}, 3)}, 1},
		{"lost for a while", 2, [2]int{0, 0}, []Event{second(Event{Kind: EventFail, For: 2 * time.Second}, 3)}, both},
		{"removed", 2, [2]int{0, 0}, []Event{second(Event{Kind: EventRemove}, 3)}, 1},
		{"drained, and kept", 2, [2]int{0, 0}, []Event{second(Event{Kind: EventDrain}, 3)}, 1},
	} {
		camp := campaign(talks(1, 20, 16), 2)
		camp.Jitter, camp.Think, camp.Gateways, camp.Schedule = -1, ThinkRecorded, c.gateways, c.schedule
		camp.NewRouter = func(_ context.Context, i int, _ uint64, _ []Member) (Router, error) {
			return &to{replica: c.replicas[i]}, nil
		}
		if got := play(t, camp).HomesPerSession; got != c.want {
			t.Errorf("%s: %v homes, want %v", c.name, got, c.want)
		}
	}
}
