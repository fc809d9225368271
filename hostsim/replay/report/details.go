package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// detailRows is how many replicas of a policy a page lists; of more, the busiest.
const detailRows = 64

// details are one policy's run, replica by replica.
type details struct {
	Name, Class, Summary, Reasons string
	Replicas                      []replicaRow
	Left                          int // replicas that are not listed
}

type replicaRow struct {
	Address, Sessions, Requests, Prompt, Hit, Preemptions, Busy, Share string
}

func detailsOf(policies []shown) (out []details) {
	for _, p := range policies {
		if p.Run == nil {
			continue
		}
		d := details{Name: p.Name, Class: p.Class, Summary: fmt.Sprintf("seed %d of %d: %s turns of %s sessions, %d replicas", p.Run.Seed, p.Seeds,
			number(float64(p.Run.Turns), 0), number(float64(p.Run.Sessions), 0), len(p.Run.Replicas))}
		for _, reason := range slices.Sorted(maps.Keys(p.Run.Reasons)) {
			if d.Reasons != "" {
				d.Reasons += ", "
			}
			d.Reasons += printable(reason) + " " + number(float64(p.Run.Reasons[reason]), 0)
		}
		replicas := p.Run.Replicas
		if len(replicas) > detailRows {
			replicas = slices.Clone(replicas)
			slices.SortStableFunc(replicas, func(a, b replay.ReplicaResult) int { return cmp.Compare(b.Busy, a.Busy) })
			d.Left = len(replicas) - detailRows
			replicas = replicas[:detailRows]
		}
		for _, r := range replicas {
			d.Replicas = append(d.Replicas, replicaRow{printable(r.Address), number(float64(r.Sessions), 0), number(float64(r.Requests), 0),
				number(float64(r.PromptTokens), 0), percent(float64(r.CachedTokens), float64(r.PromptTokens)), number(float64(r.Preemptions), 0),
				number(finite(r.Busy), 0), percent(finite(r.Busy), p.Run.Wall)})
		}
		out = append(out, d)
	}
	return out
}

// percent is part of all; "-" of nothing.
func percent(part, all float64) string {
	if !(all > 0) {
		return "-"
	}
	return number(part/all*100, 1) + "%"
}
