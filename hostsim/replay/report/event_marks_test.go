package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// Events of the setup are marked when they happen, as often as they do, and nothing else is.
func TestEventMarks(t *testing.T) {
	for _, c := range []struct {
		events, want string
	}{
		{"fail 2 at 1m0s for 30s", "[{60 fail 2 at 1m0s for 30s}]"},
		{"join at 4s; drain 1 at 101s; and 3 more", "[{4 join at 4s}]"},
		{"update every 40s pause 5s", "[{40 update every 40s pause 5s} {80 update every 40s pause 5s}]"},
		{"", "[]"}, {"nonsense", "[]"},
	} {
		if got := fmt.Sprint(eventMarks([]replay.Fact{{Name: "load", Value: "join at 1s"}, {Name: "events", Value: c.events}}, 100)); got != c.want {
			t.Errorf("%q: %s, want %s", c.events, got, c.want)
		}
	}
	if n := len(eventMarks([]replay.Fact{{Name: "events", Value: "update every 1ms pause 0s"}}, 1e9)); n != mostMarks {
		t.Errorf("%d marks", n)
	}
}

// Each load chart has the marks, and the page says what they are; without events it has none.
func TestHTMLMarksEvents(t *testing.T) {
	r := fake(four[:2], 1, 3)
	var plain, marked strings.Builder
	if err := HTML(&plain, r); err != nil {
		t.Fatal(err)
	}
	r.Setup = append(r.Setup, replay.Fact{Name: "events", Value: "drain 1 at 20s"})
	if err := HTML(&marked, r); err != nil {
		t.Fatal(err)
	}
	const mark, words = `<title>drain 1 at 20s: 20 s</title>`, "A dashed line is an event"
	if n := strings.Count(marked.String(), mark); n != 2 || !strings.Contains(marked.String(), words) {
		t.Errorf("%d marks of one event for two policies", n)
	}
	if strings.Contains(plain.String(), `class="event"`) || strings.Contains(plain.String(), words) {
		t.Error("marks without events")
	}
}
