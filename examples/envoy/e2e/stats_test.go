package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// Names as the admin interface shows them.
const (
	statSessions   = "wasmcustom.pinwheel_sessions.pool.default.replica."
	statInflight   = "wasmcustom.pinwheel_inflight.pool.default.replica."
	statDecisions  = "wasmcustom.pinwheel_decisions_total.pool.default.policy.sticky_least_loaded.reason."
	statPlacements = "wasmcustom.pinwheel_placements_total.pool.default"
	statErrors     = "wasmcustom.pinwheel_errors_total."
	statReleased   = "wasmcustom.pinwheel_released_total.pool.default"
)

// What clients, replicas and Envoy may cause while all is well with the plugin: a
// client repeats the session header with another id, Envoy serves a request on
// another host than the named one, a body does not come, or Envoy's admin interface
// does not answer.
const (
	statBodyLate        = statErrors + "kind.body_late"
	statBodyWithheld    = statErrors + "kind.body_withheld"
	statDiscovery       = statErrors + "kind.discovery"
	statRepeatedHeader  = statErrors + "kind.repeated_header"
	statServedElsewhere = statErrors + "kind.served_elsewhere"
)

// isFault reports whether a counter must stand still in every test.
func isFault(name string) bool {
	return strings.HasPrefix(name, statErrors) && !slices.Contains([]string{
		statRepeatedHeader, statServedElsewhere, statBodyLate, statBodyWithheld, statDiscovery}, name)
}

func TestIsFault(t *testing.T) {
	for name, want := range map[string]bool{
		"wasmcustom.pinwheel_errors_total.kind.panic":             true,
		"wasmcustom.pinwheel_errors_total.kind.header":            true,
		"wasmcustom.pinwheel_errors_total.kind.served_elsewhere2": true,
		"wasmcustom.pinwheel_errors_total.kind.repeated_header":   false,
		"wasmcustom.pinwheel_errors_total.kind.served_elsewhere":  false,
		"wasmcustom.pinwheel_errors_total.kind.body_late":         false,
		"wasmcustom.pinwheel_errors_total.kind.discovery":         false,
		statReleased: false,
	} {
		if got := isFault(name); got != want {
			t.Errorf("isFault(%s) = %v", name, got)
		}
	}
}

func (g *gateway) stats(t *testing.T, match string) envoytest.Stats {
	t.Helper()
	s, err := g.envoy.Admin.Stats(t.Context(), match)
	if err != nil {
		t.Fatalf("admin: %v", err)
	}
	return s
}

// counts are the pinwheel counters at one moment.
func (g *gateway) counts(t *testing.T) envoytest.Stats { return g.stats(t, `^wasmcustom\.pinwheel_`) }

// quietCounts are the counters once no worker has anything left to report: each
// adds what it counted at its own tick, every second.
func (g *gateway) quietCounts(t *testing.T) envoytest.Stats {
	t.Helper()
	last, since := g.counts(t), time.Now()
	until(t, "the counters to rest", func() (bool, string) {
		if now := g.counts(t); !maps.Equal(now, last) {
			last, since = now, time.Now()
		}
		return time.Since(since) > 1500*time.Millisecond, ""
	})
	return last
}

// waitCount waits until the counter stands n higher than in before, and stays
// within it: overshooting fails at once.
func (g *gateway) waitCount(t *testing.T, before envoytest.Stats, name string, n uint64) {
	t.Helper()
	until(t, fmt.Sprintf("%s up by %d", name, n), func() (bool, string) {
		got := g.counts(t)[name] - before[name]
		if got > n {
			t.Fatalf("%s rose by %d, want %d", name, got, n)
		}
		return got == n, fmt.Sprint(got)
	})
}

// perReplica reads a gauge of every replica, in the order of g.replicas.
func (g *gateway) perReplica(t *testing.T, prefix string) []uint64 {
	t.Helper()
	all := g.counts(t)
	var out []uint64
	for _, r := range g.replicas {
		out = append(out, all[prefix+r.Addr])
	}
	return out
}

// waitOpen waits until the gauges show these open sessions in ascending order,
// whichever replica has which.
func (g *gateway) waitOpen(t *testing.T, want ...uint64) {
	t.Helper()
	until(t, fmt.Sprintf("open sessions %v", want), func() (bool, string) {
		got := g.perReplica(t, statSessions)
		slices.Sort(got)
		return slices.Equal(got, want), fmt.Sprint(got)
	})
}

// waitOpenTotal waits until the gauges add up to n.
func (g *gateway) waitOpenTotal(t *testing.T, n uint64) {
	t.Helper()
	g.waitTotal(t, statSessions, n)
}

// waitInflight waits until n requests are in flight over all replicas.
func (g *gateway) waitInflight(t *testing.T, n uint64) {
	t.Helper()
	g.waitTotal(t, statInflight, n)
}

func (g *gateway) waitTotal(t *testing.T, prefix string, n uint64) {
	t.Helper()
	name := strings.TrimPrefix(prefix, "wasmcustom.")
	until(t, fmt.Sprintf("%s* adding up to %d", name, n), func() (bool, string) {
		var sum uint64
		got := g.perReplica(t, prefix)
		for _, v := range got {
			sum += v
		}
		return sum == n, fmt.Sprint(got)
	})
}
