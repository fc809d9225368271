package policy

import (
	"errors"
	"math"
)

// Policy chooses replicas. Implementations are values without state: what a
// choice depends on is in its arguments. Pure, no allocation.
//
// A choice may fall on a replica whose cool-down is over: whoever acts on it
// records that with Replicas.Reserve or Replicas.Probe.
type Policy interface {
	// Choose returns the position in r.List of the replica for a turn of a
	// session that has none, or -1 if the pool has no member. Only replicas that
	// may take a session are chosen.
	Choose(r *Replicas, q Query) int
	// Unpinned does the same for a request that gets no pin: it has no session
	// id, or too long a one (then q.Key is zero), or the table is full.
	Unpinned(r *Replicas, q Query) int
	// Pins reports whether a session keeps the replica that was chosen for it.
	// If not, every turn is a choice of its own and nothing is recorded.
	Pins() bool
}

// Query is what a choice is made for.
type Query struct {
	// Key is the session's, or zero for a request without one.
	Key Key
	// Now is the caller's clock in ms, by which cool-downs end.
	Now int64
	// Leaving is the id of the replica that the session is about to leave, whose
	// count still holds it; 0 for none.
	Leaving uint32
	// InFlight is the number of requests running on each replica of r.List, by
	// position; a replica beyond its end has none.
	InFlight []uint32
	// Chosen says, by position, when the caller chose each replica last for a
	// request of this kind, in numbers that grow; 0, or none, is never. Sessions
	// and requests without a pin are two kinds. See Rotation.
	Chosen []uint64
	// Random is 64 random bits, fresh for each choice.
	Random uint64
	// Prefix is what is known of the prompt; zero for nothing.
	Prefix PrefixMatch
}

// Options are the settings of policies that have any. Their documentation says
// what zero means.
type Options struct {
	// LoadFactor is that of ConsistentHash.
	LoadFactor float64
	// Threshold, BalanceAbs and BalanceRel are those of CacheAware.
	Threshold  float64
	BalanceAbs uint32
	BalanceRel float64
}

var (
	// ErrUnknown means that there is no policy of that name.
	ErrUnknown = errors.New("policy: unknown name")
	// ErrLoadFactor means that a load factor is neither 0 nor 1 or more.
	ErrLoadFactor = errors.New("policy: load factor out of range")
	// ErrThreshold means that a threshold of CacheAware is out of its range.
	ErrThreshold = errors.New("policy: cache_aware threshold out of range")
)

// Validate checks the ranges. Errors: ErrLoadFactor, ErrThreshold.
func (o Options) Validate() error {
	// Written so that NaN fails.
	if o.LoadFactor != 0 && !(o.LoadFactor >= 1 && o.LoadFactor <= math.MaxFloat32) {
		return ErrLoadFactor
	}
	if !(o.Threshold >= 0 && o.Threshold <= 1) || !(o.BalanceRel >= 0 && o.BalanceRel <= math.MaxFloat32) {
		return ErrThreshold
	}
	return nil
}

// policies is the table of all policies, the default first. The names are those
// of vllm-project/router, so that its --policy needs no translation.
var policies = [...]struct {
	name string
	make func(Options) Policy
}{
	{"sticky_least_loaded", func(Options) Policy { return StickyLeastLoaded{} }},
	{"consistent_hash", func(o Options) Policy { return ConsistentHash{LoadFactor: o.LoadFactor} }},
	{"cache_aware", func(o Options) Policy {
		return CacheAware{Threshold: o.Threshold, BalanceAbs: o.BalanceAbs, BalanceRel: o.BalanceRel}
	}},
	{"least_loaded", func(Options) Policy { return LeastLoaded{} }},
	{"power_of_two", func(Options) Policy { return PowerOfTwo{} }},
	{"round_robin", func(Options) Policy { return RoundRobin{} }},
	{"random", func(Options) Policy { return Random{} }},
}

// Names returns the names of all policies, the default first.
func Names() (names []string) {
	for _, p := range policies {
		names = append(names, p.name)
	}
	return names
}

// New returns the policy of that name. Errors: ErrUnknown, ErrLoadFactor,
// ErrThreshold.
func New(name string, o Options) (Policy, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	for _, p := range policies {
		if p.name == name {
			return p.make(o), nil
		}
	}
	return nil, ErrUnknown
}
