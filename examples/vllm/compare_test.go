//go:build vllm

package vllm

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// The same conversations by each arm, from empty caches, under three sets of session ids, and what the engines count.
func compare(t *testing.T, replicas []*replica) {
	var runs []run
	for set := range 3 {
		p := plan{MaxToken: 16, Sessions: agents(16, set)}
		for _, a := range []arm{roundRobin, ringHash, leastLoaded} {
			runs = append(runs, measure(t, "agents", a, set, p, replicas))
		}
		p = plan{MaxToken: 16, Sessions: samples(4, 8, set)}
		for _, a := range []arm{roundRobin, ringHash, leastLoaded, cacheAware} {
			runs = append(runs, measure(t, "samples", a, set, p, replicas))
		}
	}
	table := render(runs)
	fmt.Print(table) // also where the test runs without -v
	save(t, runs)
	if t.Failed() {
		return
	}
	of := func(workload string, a arm, set int) run {
		for _, r := range runs {
			if r.Workload == workload && r.Arm == a.Name && r.Set == set {
				return r
			}
		}
		t.Fatalf("no run of %s, %s, set %d", workload, a.Name, set)
		return run{}
	}
	for set := range 3 {
		rr, ring, least := of("agents", roundRobin, set), of("agents", ringHash, set), of("agents", leastLoaded, set)
		if least.total().rate() < rr.total().rate()+0.15 {
			t.Errorf("set %d: hit rate %.3f, round_robin has %.3f; want 0.15 more", set, least.total().rate(), rr.total().rate())
		}
		if least.total().rate() < ring.total().rate()-0.01 {
			t.Errorf("set %d: hit rate %.3f, ring_hash has %.3f; want no less", set, least.total().rate(), ring.total().rate())
		}
		if n := len(replicas); slices.Max(least.Sessions) != 16/n {
			t.Errorf("set %d: %v sessions on the replicas, want %d each", set, least.Sessions, 16/n)
		}
		if least.busier() > 0.55 {
			t.Errorf("set %d: a replica has %.2f of the tokens, want at most 0.55", set, least.busier())
		}
		least, aware := of("samples", leastLoaded, set), of("samples", cacheAware, set)
		if aware.total().rate() < least.total().rate()+0.03 {
			t.Errorf("set %d: cache_aware's hit rate %.3f, sticky_least_loaded has %.3f; want 0.03 more",
				set, aware.total().rate(), least.total().rate())
		}
	}
}

// render is the table of README, a line an arm, ranges over the sets.
func render(runs []run) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "workload\tarm\tprefix hits\ttokens to compute\tbusier replica\tsessions of each\ttokens queried of each")
	seen := map[string]bool{}
	for _, first := range runs {
		if key := first.Workload + first.Arm; seen[key] {
			continue
		} else {
			seen[key] = true
		}
		var hits, compute, busier span
		var sessions, queried []string
		for _, r := range runs {
			if r.Workload != first.Workload || r.Arm != first.Arm {
				continue
			}
			sum := r.total()
			hits.add(100 * sum.rate())
			compute.add(float64(sum.Queried-sum.Hit) / 1000)
			busier.add(100 * r.busier())
			var s, q []string
			for i, c := range r.Replicas {
				s, q = append(s, fmt.Sprint(r.Sessions[i])), append(q, fmt.Sprintf("%.0fk", float64(c.Queried)/1000))
			}
			sessions, queried = append(sessions, strings.Join(s, "+")), append(queried, strings.Join(q, "+"))
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", first.Workload, first.Arm, hits.text("%"), compute.text("k"),
			busier.text("%"), strings.Join(sessions, ", "), strings.Join(queried, ", "))
	}
	w.Flush()
	return b.String()
}

// span is the range of some numbers.
type span struct {
	least, most float64
	some        bool
}

func (s *span) add(x float64) {
	if !s.some {
		s.least, s.most, s.some = x, x, true
	}
	s.least, s.most = min(s.least, x), max(s.most, x)
}

func (s *span) text(unit string) string {
	least, most := fmt.Sprintf("%.0f", s.least), fmt.Sprintf("%.0f", s.most)
	if least == most {
		return least + unit
	}
	return least + " to " + most + unit
}

// save writes dist/e2e-vllm.json: every run with the counters of each replica.
func save(t *testing.T, runs []run) {
	t.Helper()
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := json.MarshalIndent(runs, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(root, "dist", "e2e-vllm.json")
	if err := os.WriteFile(file, append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
	fmt.Println("written:", file)
}
