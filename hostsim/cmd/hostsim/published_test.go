package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// The campaign that NVIDIA-NeMo/RL#3663 and NVIDIA-NeMo/Gym#2570 publish: 610 sessions, Nemotron-3-Super on TP2 engines, no
// pauses. What they leave open is chosen once, for all arms: the GPU is a GB200 (their recipe's nodes have four GPUs), the
// pool what fits into it.
const publishedEngine = "--in-process --trace campaign --think none --gpu GB200 --model nemotron-3-super "

// replayed runs hostsim replay and returns what it writes as JSON.
func replayed(t *testing.T, args string) *replay.Result {
	t.Helper()
	var out bytes.Buffer
	cmd := newRoot()
	cmd.SetArgs(append([]string{"replay", "--json", "-"}, words(args)...))
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("hostsim replay %s: %v", args, err)
	}
	var r replay.Result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	return &r
}

// words are a command's words, without the quotes around those that have them.
func words(command string) (list []string) {
	for _, w := range strings.Fields(command) {
		list = append(list, strings.Trim(w, "'"))
	}
	return list
}

// runsOf returns the runs of one policy.
func runsOf(t *testing.T, r *replay.Result, policy string) []replay.SeedResult {
	t.Helper()
	for _, p := range r.Policies {
		if p.Policy == policy {
			return p.Seeds
		}
	}
	t.Fatalf("%s was not replayed", policy)
	return nil
}

// middleOf returns the middle of a figure over seeds.
func middleOf(seeds []replay.SeedResult, of func(*replay.SeedResult) float64) float64 {
	var all []float64
	for i := range seeds {
		all = append(all, of(&seeds[i]))
	}
	return middle(all)
}

// ratio returns the middle of a figure of a by that of b, seed by seed.
func ratio(a, b []replay.SeedResult, of func(*replay.SeedResult) float64) float64 {
	var all []float64
	for i := range a {
		all = append(all, of(&a[i])/of(&b[i]))
	}
	return middle(all)
}

func middle(all []float64) float64 {
	slices.Sort(all)
	n := len(all)
	return (all[(n-1)/2] + all[n/2]) / 2
}

func wall(s *replay.SeedResult) float64        { return s.Wall }
func hitRate(s *replay.SeedResult) float64     { return s.HitRate }
func queries(s *replay.SeedResult) float64     { return s.QueriesPerPrompt }
func sessionMean(s *replay.SeedResult) float64 { return s.SessionMean }
func spread(s *replay.SeedResult) float64      { return s.RequestsMaxMin }

// hitsByLookups is the tokens that were found at the first admission by those of every attempt to admit.
func hitsByLookups(s *replay.SeedResult) float64 { return s.HitRate / s.QueriesPerPrompt }

// within reports a figure that is outside of its bounds.
func within(t *testing.T, what string, got, low, high float64) {
	t.Helper()
	t.Logf("%s: %.3f", what, got)
	if !(got >= low && got <= high) {
		t.Errorf("%s is %.3f, outside %.3f to %.3f", what, got, low, high)
	}
}

// pageShows reports that docs/replay.md does not show a figure.
func pageShows(t *testing.T, format string, args ...any) {
	t.Helper()
	page, err := os.ReadFile("../../../docs/replay.md")
	if err != nil {
		t.Fatal(err)
	}
	if text := fmt.Sprintf(format, args...); !bytes.Contains(page, []byte(text)) {
		t.Errorf("docs/replay.md lacks %q", text)
	}
}
