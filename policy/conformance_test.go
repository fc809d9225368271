package policy_test

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy/policytest"
)

var rewrite = flag.Bool("rewrite", false, "record the scripts' output anew")

// scripts are the recorded conversations, with their number of cases: a script
// that is lost or cut short must not pass for one that holds.
var scripts = map[string]int{
	"balance.txt": 9, "cache_aware.txt": 15, "consistent_hash.txt": 10, "drain.txt": 9, "expiry.txt": 6, "health.txt": 17,
	"membership.txt": 8, "no_replica.txt": 2, "per_request.txt": 14, "release.txt": 5, "reset.txt": 6, "sticky.txt": 8,
	"unrecorded.txt": 6,
}

// TestConformance plays the scripts on the pure policy. After a wanted change of
// behaviour run it with -rewrite and read what differs.
func TestConformance(t *testing.T) {
	for file, n := range scripts {
		t.Run(strings.TrimSuffix(file, ".txt"), func(t *testing.T) {
			path := filepath.Join("testdata", file)
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			header, cases, err := policytest.Parse(string(text))
			if err != nil || len(cases) != n {
				t.Fatalf("%d cases, want %d (%v)", len(cases), n, err)
			}
			for i := range cases {
				play(t, &cases[i])
			}
			if *rewrite {
				err = os.WriteFile(path, []byte(policytest.Format(header, cases)), 0o644)
			}
			if err != nil {
				t.Fatal(err)
			}
		})
	}
	if files, _ := filepath.Glob("testdata/*.txt"); len(files) != len(scripts) {
		t.Errorf("testdata has %d scripts, this test knows %d", len(files), len(scripts))
	}
}

func play(t *testing.T, c *policytest.Case) {
	t.Run(c.Name, func(t *testing.T) {
		target := newPoolTarget(t)
		got, err := c.Run(target)
		if err != nil {
			t.Fatal(err)
		}
		if *rewrite {
			c.Text = got
		} else if got != c.Text {
			t.Errorf("got\n%s\nwant\n%s", got, c.Text)
		}
	})
}
