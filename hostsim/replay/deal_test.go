package replay

import (
	"context"
	"testing"
	"time"
)

// told counts the turns of each session that a gateway's router is asked about.
type told struct {
	to
	turns map[string]int
}

func (d *told) Turn(now time.Duration, t *Turn) (Decision, error) {
	d.turns[t.Session]++
	return d.to.Turn(now, t)
}

// Dealt by session, all turns of one come to one gateway, and no gateway is left out; otherwise they come to several.
func TestDeal(t *testing.T) {
	for _, deal := range []Deal{DealRoundRobin, DealRandom, DealSession} {
		c := campaign(talks(12, 30, 16), 1)
		c.Gateways, c.Deal = 3, deal
		var gateways []*told
		c.NewRouter = func(context.Context, int, uint64, []Member) (Router, error) {
			gateways = append(gateways, &told{turns: map[string]int{}})
			return gateways[len(gateways)-1], nil
		}
		play(t, c)
		for i, g := range gateways {
			whole := 0
			for _, n := range g.turns {
				if n == 30 {
					whole++
				}
			}
			if deal == DealSession && (whole != 4 || len(g.turns) != 4) || deal != DealSession && (whole > 1 || len(g.turns) < 10) {
				t.Errorf("%s: gateway %d has turns of %d sessions, all turns of %d", deal, i, len(g.turns), whole)
			}
		}
	}
}
