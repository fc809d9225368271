package policy

import "errors"

// Policy chooses replicas. Implementations are values without state: what a
// choice depends on is in its arguments. Pure, no allocation.
type Policy interface {
	// Choose returns the position in r.List of the replica to use, or -1 if the
	// pool has no member. Only replicas that may take a session are chosen.
	Choose(r *Replicas, q Query) int
	// Pins reports whether a session keeps the replica that was chosen for it.
	// If not, every turn is a choice of its own and nothing is recorded.
	Pins() bool
}

// Query is what a choice is made for.
type Query struct {
	// Key is the session's, or zero for a request without one.
	Key Key
	// Leaving is the id of the replica that the session is about to leave, whose
	// count still holds it; 0 for none.
	Leaving uint32
	// InFlight is the number of requests running on each replica of r.List, by
	// position; nil counts as none anywhere.
	InFlight []uint32
	// Cursor is the caller's count of choices so far, for policies that take
	// replicas in turn. Sessions and other requests have cursors of their own.
	Cursor uint64
	// Random is 64 random bits, fresh for each choice.
	Random uint64
	// Prefix is what is known of the prompt, for CacheAware.
	Prefix PrefixMatch
}

// Options are the settings of policies that have any.
type Options struct {
	// LoadFactor bounds the sessions of a replica under ConsistentHash.
	LoadFactor float64
	// CacheAware's thresholds.
	CacheThreshold, BalanceRel float64
	BalanceAbs                 uint32
}

// ErrUnknown means that there is no policy of that name.
var ErrUnknown = errors.New("policy: unknown name")

// Names are the names of all policies, as vllm-project/router spells them; the
// first is the default.
var Names = []string{
	"sticky_least_loaded", "consistent_hash", "cache_aware",
	"least_loaded", "power_of_two", "round_robin", "random",
}

// New returns the policy of that name. Errors: ErrUnknown.
func New(name string, o Options) (Policy, error) {
	switch name {
	case "sticky_least_loaded":
		return StickyLeastLoaded{}, nil
	case "consistent_hash":
		return ConsistentHash{LoadFactor: o.LoadFactor}, nil
	case "cache_aware":
		return CacheAware{Threshold: o.CacheThreshold, BalanceAbs: o.BalanceAbs, BalanceRel: o.BalanceRel}, nil
	case "least_loaded":
		return LeastLoaded{}, nil
	case "power_of_two":
		return PowerOfTwo{}, nil
	case "round_robin":
		return RoundRobin{}, nil
	case "random":
		return Random{}, nil
	}
	return nil, ErrUnknown
}
