//go:build etcd

// Package e2e runs several real Envoys with the plugin, which agree through a real etcd, under the configuration that
// examples/many-gateways shows to users.
package e2e

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/etcdtest"
	"github.com/pinwheel-proxy/pinwheel/examples/many-gateways/fleet"
)

// patience bounds every wait for what a gateway does later: at its next poll, on a machine that may be busy.
const patience = time.Minute

// versions are those of $ENVOY_VERSIONS (comma list), or "own" for $ENVOY, or the ones the project supports.
func versions() []string {
	if list := os.Getenv("ENVOY_VERSIONS"); list != "" {
		return strings.Split(list, ",")
	}
	if os.Getenv("ENVOY") != "" {
		return []string{"own"}
	}
	return wheel.Versions
}

// each runs f on one Envoy version after the other: what they share is the machine's time, which the tests look at.
func each(t *testing.T, f func(t *testing.T, envoy string)) {
	t.Helper()
	for _, v := range versions() {
		t.Run(v, func(t *testing.T) {
			envoy, err := wheel.Find(t.Context(), v)
			if err != nil {
				t.Fatal(err)
			}
			f(t, envoy)
		})
	}
}

// startEtcd starts members of one etcd. It forces nothing to the disk, whose time is none of ours, and hashes passwords fast.
func startEtcd(t *testing.T, members int) []*etcdtest.Server {
	t.Helper()
	all, err := etcdtest.StartCluster(t.Context(), members, etcdtest.Options{
		Dir: t.TempDir(), Args: []string{"--unsafe-no-fsync", "--bcrypt-cost=4"},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		for _, s := range all {
			s.Stop()
			if t.Failed() {
				t.Logf("etcd at %s said last:\n%s", s.Addr, s.Log.Tail(15))
			}
		}
	})
	return all
}

// rig is two gateways before four replicas.
type rig struct {
	*fleet.Fleet
	replicas []*envoytest.Replica
	etcd     []*etcdtest.Server
}

// start starts gateways before replicas of their own. They agree if there is an etcd. The edit of the plugin's configuration
// may be nil.
func start(t *testing.T, envoy string, etcd []*etcdtest.Server, edit func(map[string]any)) *rig {
	t.Helper()
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{etcd: etcd}
	for range 4 {
		replica, err := envoytest.OpenReplica("127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(replica.Close)
		r.replicas = append(r.replicas, replica)
	}
	o := fleet.Options{Binary: envoy, Root: root, Gateways: make([]fleet.Ports, 2), Replicas: r.addresses()}
	for _, s := range etcd {
		o.Etcd = append(o.Etcd, s.Addr)
	}
	o.Plugin = func(c map[string]any) {
		c["admin"] = map[string]any{}
		if edit != nil {
			edit(c)
		}
	}
	if r.Fleet, err = fleet.Start(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.end(t))
	return r
}

// patient has requests wait for etcd as long as it takes: on a machine that others use, too, any answer may take 50 ms.
func patient(c map[string]any) { fleet.Agreement(c)["timeout"] = "5s" }

// end stops the gateways, after a look at whether a plugin has trapped.
func (r *rig) end(t *testing.T) func() {
	return func() {
		for i, g := range r.Gateways {
			stats, err := g.Envoy.Admin.Stats(context.Background(), `vm_reload|pinwheel_errors_total`)
			if err != nil {
				t.Errorf("gateway %d: %v", i, err)
			}
			for name, n := range stats {
				if n > 0 && (strings.Contains(name, "vm_reload") || faults(name)) {
					t.Errorf("gateway %d: %s is %d", i, name, n)
				}
			}
			if strings.Contains(g.Envoy.Log.Since(0), "the gateway cannot ask") {
				t.Errorf("gateway %d could not ask etcd", i)
			}
			if t.Failed() {
				t.Logf("gateway %d said last:\n%s", i, g.Envoy.Log.Tail(15))
			}
		}
		r.Stop()
	}
}

// faults tells whether a counter of errors is one of the plugin's own mistakes.
func faults(name string) bool {
	for _, kind := range []string{"panic", "shared_data", "schema", "cas_exhausted", "count_clamped", "header"} {
		if strings.HasSuffix(name, ".kind."+kind) {
			return true
		}
	}
	return false
}

func (r *rig) addresses() (list []string) {
	for _, replica := range r.replicas {
		list = append(list, replica.Addr)
	}
	return list
}

// until waits for what comes later; the text says what there is instead.
func until(t *testing.T, what string, done func() (bool, string)) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for {
		ok, is := done()
		if ok {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("waited for %s: %s", what, is)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// waitState waits until all gateways tell that state of their agreement.
func (r *rig) waitState(t *testing.T, state string) {
	t.Helper()
	until(t, "gateways whose agreement is "+state, func() (bool, string) {
		all, told, err := r.InState(t.Context(), state)
		return all, fmt.Sprint(told, err)
	})
}

// calls sums up what all gateways have asked etcd for until now.
func (r *rig) calls(t *testing.T) fleet.Calls {
	t.Helper()
	time.Sleep(2500 * time.Millisecond) // metrics follow once a second
	calls, err := r.Reported(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return calls
}

// noneFailed fails the test if a client saw one turn fail.
func noneFailed(t *testing.T, all fleet.Sessions) {
	t.Helper()
	if failed := all.Failed(); len(failed) > 0 {
		t.Errorf("%d of %d turns failed, the first: %q", len(failed), all.Turns(), failed[:min(3, len(failed))])
	}
}

// allAgree fails the test if two turns of a session were served by two replicas.
func allAgree(t *testing.T, what string, all fleet.Sessions) {
	t.Helper()
	if list := all.Disagreeing(); len(list) > 0 {
		t.Errorf("%s: of %d sessions %d had turns on two replicas, the first: %q", what, len(all), len(list), list[:min(3, len(list))])
	}
}

// stayed fails the test for each session that is elsewhere now.
func stayed(t *testing.T, what string, before, now fleet.Sessions) {
	t.Helper()
	homes, moved := before.Homes(), 0
	for id, home := range now.Homes() {
		if homes[id] != home {
			if moved++; moved <= 3 {
				t.Errorf("%s: %s was on %s and is on %s", what, id, homes[id], home)
			}
		}
	}
	if moved > 3 {
		t.Errorf("%s: %d sessions moved", what, moved)
	}
}
