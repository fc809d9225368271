package report

import (
	"flag"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

var update = flag.Bool("update", false, "record the tables of testdata anew")

var four = []string{"sticky_least_loaded", "cache_aware", "consistent_hash", "round_robin"}

// Each table is as recorded, fits 120 characters and has no number that is none.
func TestTable(t *testing.T) {
	long := strings.Repeat("a_policy_with_a_very_long_name_", 4)
	oneSeed := fake(four[:2], 1, 3)
	noTurns := &replay.Result{Policies: []replay.PolicyResult{{Policy: "random", Seeds: make([]replay.SeedResult, 2)}, {Policy: "round_robin"}}}
	hostile := fake([]string{"<script>\x1b[2J\n", "ä" + long}, 2, 2)
	hostile.Setup[0].Value = "a\x1b]0;owned\a\r\ntrace"
	for name, r := range map[string]*replay.Result{
		"campaign": fake(four, 5, 28), "one_seed": oneSeed, "one_replica": fake(four[:1], 3, 1), "nothing": {}, "no_turns": noTurns,
		"large": fake(four, 5, 1024), "hostile": hostile,
		"seven": fake(append([]string{"least_loaded", "power_of_two", "random"}, four...), 5, 28),
	} {
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
