package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

func TestFitWarns(t *testing.T) {
	at := func(mfu, weights, cache float64, gpus int, link float64) *replica.Roofline {
		return &replica.Roofline{GPU: replica.GPU{Bandwidth: 1e12, Link: link}, GPUs: gpus, MFU: mfu, WeightRead: weights, KVRead: cache}
	}
	const rest = " is at its bound: this log says little about it; send more load\n"
	for _, tt := range []struct {
		requests      int
		given, fitted *replica.Roofline
		hold          []string
		want          string
	}{
		{50, at(.5, .5, .5, 2, 1e10), at(.99, .99, .99, 2, 9e11), nil, ""},
		{49, at(.5, .5, .5, 1, 0), at(.5, .5, .5, 1, 0), nil, "49 requests: with fewer than 50 the numbers are uncertain; send more load\n"},
		{50, at(.5, .5, .5, 1, 0), at(.9999, .5, 1, 1, 1e12), nil, "mfu" + rest + "kv_read" + rest},
		{50, at(.5, .5, .5, 2, 1e10), at(.5, 1, .5, 2, 1e12), nil, "weight_read" + rest + "link" + rest},
		{50, at(.5, .5, .5, 2, 9e11), at(.5, .5, .5, 2, 1e12), nil, ""},
		{50, at(.5, .5, .5, 2, 9e11), at(.5, .5, .5, 2, 1.8e12), nil, "link" + rest},
		{50, at(1, .5, .5, 2, 1e12), at(1, .5, .5, 2, 2e12), []string{"mfu", "link"}, ""},
	} {
		var got strings.Builder
		f := fitFlags{hold: tt.hold}
		if f.warn(&got, tt.requests, tt.given, tt.fitted); got.String() != tt.want {
			t.Errorf("%d requests, %+v: %q, want %q", tt.requests, tt.fitted, got.String(), tt.want)
		}
	}
}

// A search for a share that the log puts beyond its bound ends where the warning looks.
func TestFitEndsAtBound(t *testing.T) {
	log, engine := fitFiles(t)
	text, err := os.ReadFile(engine)
	if err != nil {
		t.Fatal(err)
	}
	slow := filepath.Join(t.TempDir(), "slow.json")
	if err := os.WriteFile(slow, []byte(strings.ReplaceAll(string(text), "100e12", "20e12")), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, hold := range []string{"weight_read,kv_read", "weight_read,kv_read,mfu"} {
		code, stdout, stderr := command("fit", log, "--engine", slow, "--hold", hold)
		if want := !strings.Contains(hold, "mfu"); code != 0 || want != strings.Contains(stderr, "mfu is at its bound") {
			t.Errorf("--hold %s: exit %d, %s%s", hold, code, stdout, stderr)
		}
	}
}
