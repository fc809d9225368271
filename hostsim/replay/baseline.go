package replay

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Names of what is no policy of Pinwheel's and stands beside them in published tables.
const (
	PerProcessCounter = "per_process_counter"
	SessionHash       = "session_hash"
	RoundRobin        = "per_request_round_robin"
	LeastRequests     = "per_request_least_requests"
)

// Baselines are the names that Baseline knows.
func Baselines() []string {
	return []string{PerProcessCounter, SessionHash, RoundRobin, LeastRequests}
}

// Baseline returns what makes the named baseline's routers, for Campaign.NewRouter. Each router has state of its own.
// Errors: ErrCampaign.
func Baseline(name string) (func(ctx context.Context, i int, seed uint64, fleet []Member) (Router, error), error) {
	var make func() chooser
	switch name {
	case PerProcessCounter:
		make = func() chooser { return &perProcessCounter{} }
	case SessionHash:
		make = func() chooser { return sessionHash{} }
	case RoundRobin:
		make = func() chooser { return &roundRobin{} }
	case LeastRequests:
		make = func() chooser { return &leastRequests{} }
	default:
		return nil, fmt.Errorf("%w: there is no baseline %q: %s", ErrCampaign, name, strings.Join(Baselines(), ", "))
	}
	return func(_ context.Context, _ int, _ uint64, fleet []Member) (Router, error) {
		return &baseline{name: name, chooser: make(), members: present(fleet)}, nil
	}, nil
}

// chooser is a rule without a view of health or of drains: it knows the list of replicas, and no more.
type chooser interface {
	// choose returns one of members, which is not empty.
	choose(t *Turn, members []int) int
	// done says that a turn at replica has ended.
	done(replica int)
}

// baseline makes a Router of a chooser.
type baseline struct {
	name    string
	chooser chooser
	members []int // indices into the fleet
}

func present(fleet []Member) (members []int) {
	for i := range fleet {
		if !fleet[i].Gone {
			members = append(members, i)
		}
	}
	return members
}

func (b *baseline) Turn(_ time.Duration, t *Turn) (Decision, error) {
	if len(b.members) == 0 {
		return Decision{Replica: -1, Reason: b.name}, nil
	}
	return Decision{Replica: b.chooser.choose(t, b.members), Reason: b.name}, nil
}

func (b *baseline) Done(_ time.Duration, d Decision, _ int) error {
	if d.Replica >= 0 {
		b.chooser.done(d.Replica)
	}
	return nil
}

func (b *baseline) Finish(time.Duration, string) error { return nil }

func (b *baseline) Members(_ time.Duration, fleet []Member) error {
	b.members = present(fleet)
	return nil
}

func (b *baseline) Close() error { return nil }
