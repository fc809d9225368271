package report

import (
	"strings"
	"testing"

	"github.com/go-analyze/charts/chartdraw"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// A row has a rectangle for each phase, those of a phase that follow each other at once are one, and a sign where the replica
// changes.
func TestSessionRow(t *testing.T) {
	s := &replay.SessionSpan{Session: "planner", Turns: []replay.TurnSpan{
		{Replica: 1, Sent: 0, Admitted: 10, First: 20, End: 30},
		{Replica: 1, Sent: 30, Admitted: 30, First: 30, End: 50},
		{Replica: 2, Sent: 60, Admitted: 70, First: 80, End: 90},
	}}
	p := plane{newCanvas(100, 20), chartdraw.NewBox(0, 0, 100, 20), &scale{max: 100, domain: 100}, &scale{max: 1, domain: 20}}
	moves := drawSession(p, s, 10)
	if len(moves) != 1 || moves[0] != 60 {
		t.Errorf("moves at %g, want 60", moves)
	}
	for class, want := range map[string]int{"wait": 2, "prefill": 2, "decode": 2} {
		_, path, _ := strings.Cut(p.out.String(), `"`+class+`" d="`)
		path, _, _ = strings.Cut(path, `"`)
		if n := strings.Count(path, "M"); n != want {
			t.Errorf("%s: %d rectangles, want %d: %s", class, n, want, path)
		}
	}
	if !strings.Contains(p.out.String(), `"decode" d="M20 4.5h30v11h-30z`) {
		t.Errorf("two decodes that follow each other are not one: %s", p.out.String())
	}
	if !strings.HasPrefix(p.out.String(), `<path class="pause" d="M0 8.5h90v3h-90z"/>`) {
		t.Errorf("the session's extent is not drawn first: %s", p.out.String())
	}
	if got, want := phasesText([]replay.SessionSpan{*s, {}}), "22% queued, 22% prefill, 44% decode, 11% between turns"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := phasesText(nil); got != "" {
		t.Error(got)
	}
	if got, want := sessionText(s), "planner: 3 turns from 0 to 90 s; 20 s queued, 20 s prefill, 40 s decode; 1 moves"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
