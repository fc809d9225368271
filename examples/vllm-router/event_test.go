//go:build peer

package vllmrouter

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
)

// kind is what an event does.
type kind string

const (
	newSession kind = "new"
	aTurn      kind = "turn"
	finish     kind = "finish"
	unhealthy  kind = "unhealthy"
	back       kind = "back"
	removed    kind = "removed"
	added      kind = "added"
)

// event is one step. Which session and which replica is settled before any router has answered, so that the first event
// that fails ends the shortest failing prefix.
type event struct {
	kind    kind
	session string // of newSession, aTurn, finish
	replica string // of the others
	// members are the replicas after the event, and whether they are healthy.
	members map[string]bool
}

func (e event) String() string { return fmt.Sprintf("%-9s %s%s", e.kind, e.session, e.replica) }

// sessionsAimedAt is about how many sessions are open at once.
const sessionsAimedAt = 30

// generate returns n events that begin with the given members out of all replicas. At least two members are always
// healthy: where none is, the two differ by a rule of its own.
func generate(seed uint64, n int, all []string, members map[string]bool) []event {
	random := rand.New(rand.NewPCG(seed, 0))
	var open []string
	var events []event
	members = maps.Clone(members)
	for len(events) < n {
		e := event{}
		switch p := random.IntN(1000); {
		case p < 25:
			e.kind, e.replica = unhealthy, pick(random, healthyOf(members, true))
			if len(healthyOf(members, true)) <= 2 {
				continue
			}
		case p < 45:
			e.kind, e.replica = back, pick(random, healthyOf(members, false))
		case p < 60:
			e.kind, e.replica = removed, pick(random, slices.Sorted(maps.Keys(members)))
			if members[e.replica] && len(healthyOf(members, true)) <= 2 {
				continue
			}
		case p < 80:
			e.kind, e.replica = added, pick(random, others(all, members))
		case p < 560:
			e.kind, e.session = aTurn, pick(random, open)
		case random.IntN(2*sessionsAimedAt) >= len(open):
			e.kind, e.session = newSession, fmt.Sprintf("s%d", len(events))
			open = append(open, e.session)
		default:
			e.kind, e.session = finish, pick(random, open)
			open = slices.DeleteFunc(open, func(s string) bool { return s == e.session })
		}
		if e.session == "" && e.replica == "" {
			continue // there is nothing to pick from
		}
		members = maps.Clone(members)
		switch e.kind {
		case unhealthy:
			members[e.replica] = false
		case back, added:
			members[e.replica] = true
		case removed:
			delete(members, e.replica)
		}
		e.members = members
		events = append(events, e)
	}
	return events
}

// pick returns one of them, or "" if there is none.
func pick(random *rand.Rand, from []string) string {
	if len(from) == 0 {
		return ""
	}
	return from[random.IntN(len(from))]
}

// healthyOf returns the members in that state of health, in order.
func healthyOf(members map[string]bool, healthy bool) (out []string) {
	for _, address := range slices.Sorted(maps.Keys(members)) {
		if members[address] == healthy {
			out = append(out, address)
		}
	}
	return out
}

// others returns the replicas that are no members.
func others(all []string, members map[string]bool) (out []string) {
	for _, address := range all {
		if _, in := members[address]; !in {
			out = append(out, address)
		}
	}
	return out
}
