package report

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"unicode/utf8"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// colours is how many policies the style sheet tells apart; further ones begin anew, with dashes.
const colours = 8

// shown is a policy in the charts, and the run that stands for it.
type shown struct {
	Name string
	// Class is its colour in the style sheet.
	Class string
	Seeds int
	// Through is how it was asked.
	Through string
	// Run is the one of median wall time, the earlier of two; nil without one.
	Run    *replay.SeedResult
	policy *replay.PolicyResult
}

func shownPolicies(r *replay.Result) []shown {
	var out []shown
	for i := range r.Policies {
		p := &r.Policies[i]
		s := shown{Name: printable(p.Policy), Class: fmt.Sprintf("p%d", i%colours), Seeds: len(p.Seeds), Through: printable(p.Through), policy: p}
		if i >= colours {
			s.Class += " again"
		}
		if len(p.Seeds) > 0 {
			byWall := make([]int, len(p.Seeds))
			for k := range byWall {
				byWall[k] = k
			}
			slices.SortStableFunc(byWall, func(a, b int) int { return cmp.Compare(p.Seeds[a].Wall, p.Seeds[b].Wall) })
			s.Run = &p.Seeds[byWall[(len(byWall)-1)/2]]
		}
		out = append(out, s)
	}
	return out
}

// short is text of at most n characters.
func short(text string, n int) string {
	if utf8.RuneCountInString(text) <= n {
		return text
	}
	return string([]rune(text)[:n-1]) + "…"
}

// finite is v, or 0 where that is no number.
func finite(v float64) float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0
	}
	return v
}
