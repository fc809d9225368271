package policy_test

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// usual are options as configuration has them where it says nothing.
var usual = policy.Options{LoadFactor: 1.25, Threshold: 0.3, BalanceAbs: 64, BalanceRel: 1.5}

// TestNames: users type them, and peers' users bring theirs.
func TestNames(t *testing.T) {
	want := []string{
		"sticky_least_loaded", "consistent_hash", "cache_aware",
		"least_loaded", "power_of_two", "round_robin", "random",
	}
	if got := policy.Names(); !slices.Equal(got, want) {
		t.Errorf("got %v", got)
	}
}

func TestNew(t *testing.T) {
	want := map[string]policy.Policy{
		"sticky_least_loaded": policy.StickyLeastLoaded{},
		"consistent_hash":     policy.ConsistentHash{LoadFactor: 1.25},
		"cache_aware":         policy.CacheAware{Threshold: 0.3, BalanceAbs: 64, BalanceRel: 1.5},
		"least_loaded":        policy.LeastLoaded{},
		"power_of_two":        policy.PowerOfTwo{},
		"round_robin":         policy.RoundRobin{},
		"random":              policy.Random{},
	}
	for _, name := range policy.Names() {
		if got, err := policy.New(name, usual); err != nil || got != want[name] {
			t.Errorf("%s: %#v, %v", name, got, err)
		}
	}
	for _, name := range []string{"", "Random", "sticky", "round-robin"} {
		if p, err := policy.New(name, usual); !errors.Is(err, policy.ErrUnknown) || p != nil {
			t.Errorf("%q: %v, %v", name, p, err)
		}
	}
}

func TestOptionsValidate(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(*policy.Options)
		want   error
	}{
		{"the usual ones", func(*policy.Options) {}, nil},
		{"zero", func(o *policy.Options) { *o = policy.Options{} }, nil},
		{"no bound", func(o *policy.Options) { o.LoadFactor = 0 }, nil},
		{"the tightest bound", func(o *policy.Options) { o.LoadFactor = 1 }, nil},
		{"a bound below a fair share", func(o *policy.Options) { o.LoadFactor = 0.99 }, policy.ErrLoadFactor},
		{"a negative bound", func(o *policy.Options) { o.LoadFactor = -1 }, policy.ErrLoadFactor},
		{"a bound that is no number", func(o *policy.Options) { o.LoadFactor = math.NaN() }, policy.ErrLoadFactor},
		{"an infinite bound", func(o *policy.Options) { o.LoadFactor = math.Inf(1) }, policy.ErrLoadFactor},
		{"all of the prompt", func(o *policy.Options) { o.Threshold = 1 }, nil},
		{"more than the prompt", func(o *policy.Options) { o.Threshold = 1.01 }, policy.ErrThreshold},
		{"less than nothing", func(o *policy.Options) { o.Threshold = -0.1 }, policy.ErrThreshold},
		{"a threshold that is no number", func(o *policy.Options) { o.Threshold = math.NaN() }, policy.ErrThreshold},
		{"a negative factor", func(o *policy.Options) { o.BalanceRel = -1 }, policy.ErrThreshold},
		{"a factor that is no number", func(o *policy.Options) { o.BalanceRel = math.NaN() }, policy.ErrThreshold},
		{"an infinite factor", func(o *policy.Options) { o.BalanceRel = math.Inf(1) }, policy.ErrThreshold},
	} {
		o := usual
		c.change(&o)
		if err := o.Validate(); !errors.Is(err, c.want) {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := policy.New("random", o); !errors.Is(err, c.want) {
			t.Errorf("%s: New says %v", c.name, err)
		}
	}
}

func TestPins(t *testing.T) {
	pins := map[string]bool{"sticky_least_loaded": true, "consistent_hash": true, "cache_aware": true}
	for _, name := range policy.Names() {
		p, err := policy.New(name, usual)
		if err != nil || p.Pins() != pins[name] {
			t.Errorf("%s: %v", name, err)
		}
	}
	if (policy.ConsistentHash{}).Pins() {
		t.Error("a hash without a bound pins")
	}
}

// TestChoicesAreAFunction: a compare-and-swap that fails runs the choice again,
// and it must not have changed anything.
func TestChoicesAreAFunction(t *testing.T) {
	for _, name := range policy.Names() {
		p, _ := policy.New(name, usual)
		r := busy(9)
		r.List[2].State, r.List[3].Health = policy.Draining, policy.Health{Cooldown: 10, Since: 1, Until: 11}
		before := *r
		before.List = slices.Clone(r.List)
		for n, id := range manyIDs(100) {
			q := policy.Query{Key: key(id), Now: int64(n), Chosen: []uint64{uint64(n % 11), 4, 2}, InFlight: []uint32{3, 0, 4}, Random: uint64(n) * 0x9e3779b97f4a7c15}
			a, b := p.Choose(r, q), p.Choose(r, q)
			c, d := p.Unpinned(r, q), p.Unpinned(r, q)
			if a != b || c != d || a < 0 || c < 0 {
				t.Fatalf("%s: chose %d and %d, unpinned %d and %d", name, a, b, c, d)
			}
		}
		if r.Placements != before.Placements || !slices.Equal(r.List, before.List) {
			t.Errorf("%s changed the replicas", name)
		}
	}
}
