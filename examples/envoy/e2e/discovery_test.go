package e2e

import (
	"fmt"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/tidwall/gjson"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
)

// anyTurn sends one turn of a session, whatever its reason, and expects 200 from the
// replica that the plugin names, if it names any.
func (g *gateway) anyTurn(t *testing.T, id string) reply {
	t.Helper()
	g.opened(id)
	r, err := g.client.send(t.Context(), http.MethodPost, chatPath, strings.NewReader("{}"), "X-Session-ID", id)
	if err != nil || r.Status != 200 || r.Reason != "no_replica" && r.Served != r.Chosen {
		g.complain(t, "turn of %s: status %d by %q, chosen %q (%s), %v", id, r.Status, r.Served, r.Chosen, r.Reason, err)
	}
	return r
}

// spreads expects that as many of twelve new sessions go to each replica, in the
// order of g.replicas. Both workers place some.
func (g *gateway) spreads(t *testing.T, when string, want ...int) {
	t.Helper()
	if got := g.placeTwelve(t); !slices.Equal(got, want) {
		t.Errorf("%s: new sessions per replica %v, want %v", when, got, want)
	}
}

// joins expects that the replica, which has fewer sessions than the others, gets
// more of twelve new ones: up to twice its fair share.
func (g *gateway) joins(t *testing.T, when string, replica int) {
	t.Helper()
	if got := g.placeTwelve(t); got[replica] < 5 || got[replica] > 8 {
		t.Errorf("%s: new sessions per replica %v, want 5 to 8 on replica %d", when, got, replica)
	}
}

func (g *gateway) placeTwelve(t *testing.T) []int {
	t.Helper()
	ids := newIDs(12)
	served := map[string]string{}
	for _, id := range ids {
		g.client.http.CloseIdleConnections()
		served[id] = g.anyTurn(t, id).Served
	}
	g.release(t, ids...)
	return g.spread(served)
}

// stayHome expects a turn of every session at its replica.
func (g *gateway) stayHome(t *testing.T, when string, homes map[string]string) {
	t.Helper()
	for id, home := range homes {
		if r := g.anyTurn(t, id); r.Served != home || r.Reason != "pinned" {
			g.complain(t, "%s: session %s of %s is %s on %s", when, id, home, r.Reason, r.Served)
		}
	}
}

// Envoy learns of a replica, loses it and learns of it again; so does the plugin,
// and nobody else's sessions move.
func TestDiscoveryFindsLosesAndRefinds(t *testing.T) {
	t.Parallel()
	each(t, discovered, func(t *testing.T, g *gateway) {
		b, c := g.replicas[1].Addr, g.replicas[2].Addr
		defer g.list(t, nil)
		g.list(t, map[string]string{c: notListed})
		homes := g.turns(t, newIDs(12), "placed")
		if got := g.spread(homes); !slices.Equal(got, []int{6, 6, 0}) {
			t.Errorf("sessions per replica %v, want 6/6/0", got)
		}
		g.list(t, nil)
		g.joins(t, "found", 2)
		g.stayHome(t, "found", homes)

		g.list(t, map[string]string{b: notListed})
		for id, home := range homes {
			r := g.anyTurn(t, id)
			if home == b && (r.Reason != "failover_removed" || r.Served == b) || home != b && (r.Served != home || r.Reason != "pinned") {
				g.complain(t, "lost: session of %s is %s on %s", home, r.Reason, r.Served)
			}
			homes[id] = r.Served
		}
		if got := g.spread(homes); !slices.Equal(got, []int{6, 0, 6}) {
			t.Errorf("lost: sessions per replica %v, want 6/0/6", got)
		}
		// Longer than the grace in which the address would be the same replica.
		time.Sleep(2 * time.Second)
		g.list(t, nil)
		g.stayHome(t, "found again", homes)
		g.joins(t, "found again", 1)
	})
}

// Envoy's view of a replica's health reaches the plugin.
func TestDiscoveredHealth(t *testing.T) {
	t.Parallel()
	each(t, discovered, func(t *testing.T, g *gateway) {
		a := g.replicas[0].Addr
		defer g.list(t, nil)
		g.list(t, nil)
		homes := g.turns(t, newIDs(12), "placed")
		g.list(t, map[string]string{a: "DRAINING"})
		g.stayHome(t, "draining", homes)
		g.spreads(t, "draining", 0, 6, 6)

		g.list(t, map[string]string{a: "UNHEALTHY"})
		for id, home := range homes {
			r := g.anyTurn(t, id)
			if home == a && (r.Reason != "failover_unhealthy" || r.Served == a) || home != a && (r.Served != home || r.Reason != "pinned") {
				g.complain(t, "unhealthy: session of %s is %s on %s", home, r.Reason, r.Served)
			}
			homes[id] = r.Served
		}
		g.list(t, nil)
		g.stayHome(t, "well again", homes)
		g.joins(t, "well again", 0)

		all := map[string]string{}
		for _, r := range g.replicas {
			all[r.Addr] = "UNHEALTHY"
		}
		g.list(t, all)
		g.stayHome(t, "all unhealthy", homes)
	})
}

// The lines that discovery.yaml has for DNS, in place of those for a file.
func TestDiscoveryFromDNS(t *testing.T) {
	t.Parallel()
	for _, v := range versions() {
		t.Run(v, func(t *testing.T) {
			t.Parallel()
			bin, err := wheel.Find(t.Context(), v)
			if err != nil {
				t.Fatal(err)
			}
			g, err := startDiscovered(t.Context(), bin, func(g *gateway, file string) string {
				lines := strings.SplitAfter(file, "\n")
				var out, dns []string
				for _, l := range lines {
					switch code, comment := strings.CutPrefix(l, "    #       "); {
					case comment:
						dns = append(dns, "    "+code)
					case l == "    type: EDS\n":
						out = append(out, dns...)
					case !strings.HasPrefix(l, "    eds_cluster_config:"):
						out = append(out, l)
					}
				}
				_, port, _ := net.SplitHostPort(g.replicas[1].Addr)
				return strings.NewReplacer("vllm.default.svc.cluster.local", "127.0.0.1", "port_value: 8000", "port_value: "+port).Replace(strings.Join(out, ""))
			})
			if err != nil {
				t.Fatal(err)
			}
			defer g.stop()
			until(t, "the replica to be discovered", func() (bool, string) {
				r := g.anyTurn(t, newID())
				return r.Reason == "placed" && r.Served == g.replicas[1].Addr, r.Reason + " on " + r.Served
			})
		})
	}
}

// The plugin asks Envoy's admin interface for its clusters only, and Envoy before 1.38
// answers with all of them: the plugin looks for its own among them.
func TestClustersAreFiltered(t *testing.T) {
	t.Parallel()
	each(t, discovered, func(t *testing.T, g *gateway) {
		info, err := g.envoy.Admin.Get(t.Context(), "/server_info")
		if err != nil {
			t.Fatal(err)
		}
		version := regexp.MustCompile(`/1\.(\d+)\.\d+[/-]`).FindStringSubmatch(gjson.Get(info, "version").Str) // COMMIT/1.40.0/Clean/...
		if version == nil {
			t.Fatalf("the version is %s", gjson.Get(info, "version"))
		}
		page, err := g.envoy.Admin.Get(t.Context(), "/clusters?format=json&filter=^vllm$")
		if err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, c := range gjson.Get(page, "cluster_statuses.#.name").Array() {
			names = append(names, c.Str)
		}
		want := []string{"vllm"}
		if minor, _ := strconv.Atoi(version[1]); minor < 38 {
			want = []string{"envoy_admin", "vllm"}
		}
		if slices.Sort(names); !slices.Equal(names, want) {
			t.Errorf("Envoy %s lists %v, want %v", version[1], names, want)
		}
	})
}

// The admin interface is not there: the replicas stay as they are, routing goes
// on, and what has happened meanwhile is learnt afterwards. One worker asks.
func TestDiscoveryWithoutTheAdminInterface(t *testing.T) {
	t.Parallel()
	each(t, discovered, func(t *testing.T, g *gateway) {
		d, c := g.discovery, g.replicas[2].Addr
		defer g.list(t, nil)
		g.list(t, nil)
		homes := g.turns(t, newIDs(12), "placed")
		failed, asked, since := g.counts(t)[statDiscovery], d.asked.Load(), time.Now()
		time.Sleep(3 * time.Second)
		if n, most := d.asked.Load()-asked, int64(time.Since(since)/(500*time.Millisecond))+2; n < 2 || n > most {
			t.Errorf("asked %d times, at most %d are one worker's", n, most)
		}
		d.close()
		until(t, "failures to be counted", func() (bool, string) {
			n := g.counts(t)[statDiscovery] - failed
			return n >= 3, fmt.Sprint(n)
		})
		g.stayHome(t, "without", homes)
		g.spreads(t, "without", 4, 4, 4)
		if err := d.open(d.addr); err != nil {
			t.Fatal(err)
		}
		g.list(t, map[string]string{c: "DRAINING"})
		g.stayHome(t, "afterwards", homes)
		g.spreads(t, "afterwards", 6, 6, 0)
	})
}
