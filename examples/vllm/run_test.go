//go:build vllm

package vllm

import (
	"fmt"
	"testing"
)

// run is one arm's play of one plan.
type run struct {
	Workload string   `json:"workload"`
	Arm      string   `json:"arm"`
	Set      int      `json:"set"`      // of session ids
	Replicas []tokens `json:"replicas"` // by the engines' counters
	Sessions []int    `json:"sessions"` // that each replica had a turn of
}

func (r run) total() (sum tokens) {
	for _, c := range r.Replicas {
		sum = sum.plus(c)
	}
	return sum
}

// busier is the share of the tokens that went to the replica with the most of them, 0 to 1.
func (r run) busier() float64 {
	most := 0
	for _, c := range r.Replicas {
		most = max(most, c.Queried)
	}
	return float64(most) / float64(r.total().Queried)
}

// measure plays the plan through a new gateway, from empty caches, and holds the engines' counters against what each
// single answer says.
func measure(t *testing.T, workload string, a arm, set int, p plan, replicas []*replica) run {
	t.Helper()
	before := make([]tokens, len(replicas))
	for i, r := range replicas {
		r.forget(t)
		before[i] = mustCount(t, r)
	}
	g := startGateway(t, a, replicas)
	defer g.envoy.Stop()
	p.Finish = a.Policy != ""
	said, sessions := map[string]tokens{}, map[string]map[string]bool{}
	answers := play(t, g, p, func(x answer) {
		said[x.Served] = said[x.Served].plus(tokens{x.Prompt, x.Cached})
		if sessions[x.Served] == nil {
			sessions[x.Served] = map[string]bool{}
		}
		sessions[x.Served][x.Session] = true
	})
	result := run{Workload: workload, Arm: a.Name, Set: set, Replicas: make([]tokens, len(replicas))}
	for i, r := range replicas {
		// The counters follow within an engine step.
		eventually(t, "the counters of "+r.addr, func() string {
			result.Replicas[i] = mustCount(t, r).minus(before[i])
			if result.Replicas[i].Queried < said[r.addr].Queried {
				return fmt.Sprintf("%+v, the answers say %+v", result.Replicas[i], said[r.addr])
			}
			return ""
		})
		if result.Replicas[i] != said[r.addr] {
			t.Errorf("%s, set %d: %s counts %+v, its answers say %+v", a.Name, set, r.addr, result.Replicas[i], said[r.addr])
		}
		result.Sessions = append(result.Sessions, len(sessions[r.addr]))
	}
	if a.Policy != "" {
		g.checkPins(t, p, answers)
	}
	fmt.Printf("%s, set %d, %s: %.1f%% hits, %+v, sessions %v\n",
		workload, set, a.Name, 100*result.total().rate(), result.Replicas, result.Sessions)
	return result
}

func mustCount(t *testing.T, r *replica) tokens {
	t.Helper()
	c, err := r.counters()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// checkPins holds that each session was placed once and stayed, that who served is who Pinwheel named, and that no
// session is left over.
func (g *gateway) checkPins(t *testing.T, p plan, answers []answer) {
	t.Helper()
	home := map[string]string{}
	for _, a := range answers {
		want := "pinned"
		if a.Turn == 0 {
			want, home[a.Session] = "placed", a.Served
		}
		if a.Reason != want || a.Named != a.Served || a.Served != home[a.Session] {
			t.Errorf("turn %d of %s: %s, named %s, served by %s; want %s by %s",
				a.Turn, a.Session, a.Reason, a.Named, a.Served, want, home[a.Session])
		}
	}
	g.checkOver(t, len(p.Sessions))
}

// checkOver holds that as many sessions have begun and ended, and that none is open.
func (g *gateway) checkOver(t *testing.T, sessions int) {
	t.Helper()
	eventually(t, "the end of all sessions", func() string {
		begun := g.sum(t, `pinwheel_decisions_total\..*reason\.placed$`) // a failover is no beginning
		ended, open := g.sum(t, "pinwheel_released_total"), g.sum(t, "pinwheel_sessions")
		if begun != uint64(sessions) || ended != uint64(sessions) || open != 0 {
			return fmt.Sprintf("%d begun, %d released, %d open; want %d, %d, 0", begun, ended, open, sessions, sessions)
		}
		return ""
	})
}
