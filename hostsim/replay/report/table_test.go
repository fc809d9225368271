package report

import (
	"flag"
	"math"
	"os"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

var update = flag.Bool("update", false, "record the tables of testdata anew")

var four = []string{"sticky_least_loaded", "cache_aware", "consistent_hash", "round_robin"}

// cases are results as a campaign makes them, and at the ends of what there can be.
var cases = sync.OnceValue(func() map[string]*replay.Result {
	long := strings.Repeat("a_policy_with_a_very_long_name_", 4)
	hostile := fake([]string{"<script>document.title='owned'</script>\x1b[2J\n", `"><img src=x onerror=alert(1)>`, "ä" + long}, 2, 2)
	hostile.Setup[0].Value = "a\x1b]0;owned\a\r\n</title><script>document.title='owned'</script>"
	for i := range hostile.Policies {
		for k := range hostile.Policies[i].Seeds {
			s := &hostile.Policies[i].Seeds[k]
			s.Slowest[0].Session = "\x1b<script>document.title='owned'</script>"
			s.Replicas[0].Address = "<b>10.0.0.1"
			s.Reasons["<i>"] = 1
		}
	}
	broken := fake(four[:2], 3, 3)
	for i := range broken.Policies[1].Seeds {
		s := &broken.Policies[1].Seeds[i]
		s.Wall, s.T95, s.HitRate, s.RequestsMaxMean, s.TTFTP99 = math.NaN(), math.Inf(1), math.Inf(-1), math.NaN(), math.NaN()
		s.Samples[3].HitRate, s.Latency.TTFT[4], s.Replicas[1].Busy = math.NaN(), math.Inf(1), math.NaN()
	}
	broken.Ideal = math.NaN()
	apart := fake(four[3:], 1, 4) // each turn on another replica
	for i := range apart.Policies[0].Seeds[0].Slowest {
		for k := range apart.Policies[0].Seeds[0].Slowest[i].Turns {
			apart.Policies[0].Seeds[0].Slowest[i].Turns[k].Replica = k % 4
		}
	}
	return map[string]*replay.Result{
		"campaign": fake(four, 5, 28), "one_seed": fake(four[:2], 1, 3), "one_replica": fake(four[:1], 3, 1), "nothing": {},
		"no_turns": {Policies: []replay.PolicyResult{{Policy: "random", Seeds: make([]replay.SeedResult, 2)}, {Policy: "round_robin"}}},
		"large":    fake(four[:2], 2, 1024), "hostile": hostile, "broken": broken, "apart": apart, "recorded": recorded(),
		"seven": fake(append([]string{"least_loaded", "power_of_two", "random"}, four...), 5, 28),
	}
})

// Each table is as recorded, fits 120 characters and has no number that is none.
func TestTable(t *testing.T) {
	for name, r := range cases() {
		t.Run(name, func(t *testing.T) {
			var b strings.Builder
			if err := Table(&b, r); err != nil {
				t.Fatal(err)
			}
			golden(t, "testdata/"+name+".txt", b.String())
			for line := range strings.Lines(b.String()) {
				if n := utf8.RuneCountInString(line) - 1; n > 120 {
					t.Errorf("%d characters: %s", n, line)
				}
			}
			for _, bad := range []string{"NaN", "Inf", "\x1b", "\r", "\a"} {
				if strings.Contains(b.String(), bad) {
					t.Errorf("the table has %q", bad)
				}
			}
		})
	}
}

// What decides is one table, also with the longest names, a day of wall time and a move at each turn.
func TestTableIsOne(t *testing.T) {
	r := fake([]string{replay.LeastRequests, replay.RoundRobin, replay.SessionHash, replay.PerProcessCounter, "sticky_least_loaded", "consistent_hash", "cache_aware"}, 5, 28)
	for i := range r.Policies {
		for k := range r.Policies[i].Seeds {
			s := &r.Policies[i].Seeds[k]
			s.Wall, s.T95, s.TTFTP99, s.QueueP99, s.Moves = s.Wall*14, s.T95*14, s.TTFTP99*100, s.QueueP99*1000, 19582-i
		}
	}
	var b strings.Builder
	if err := Table(&b, r); err != nil {
		t.Fatal(err)
	}
	golden(t, "testdata/wide.txt", b.String())
	if n := strings.Count(b.String(), replay.LeastRequests); n != 3 {
		t.Errorf("a policy has %d rows, want one in each of 3 tables:\n%s", n, b.String())
	}
}

func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s is different (-update records it); got\n%s", file, got)
	}
}
