package main

import (
	"fmt"
	"io"
	"math"
	"time"
)

// What the model is held to. One after another it has no excuse; with free clients the machine's own pace decides which
// request is admitted first, so only the share of hits can be predicted.
const (
	minEqual  = 0.99
	maxHitGap = 0.01
)

// hits are tokens of prompts, and those of them found in the cache.
type hits struct{ prompt, cached int }

func (r *recording) hits() hits {
	var h hits
	for _, x := range r.Rows {
		h.prompt += x.Prompt
		h.cached += x.Cached
	}
	return h
}

// rate is the share of hits, 0 to 1.
func (h hits) rate() float64 { return float64(h.cached) / float64(h.prompt) }

// equal is the number of rows that are the same in both.
func equal(a, b *recording) int {
	n := 0
	for i, x := range a.Rows {
		if x == b.Rows[i] {
			n++
		}
	}
	return n
}

// result is a campaign as the engine answered it now, as the model does, and as an engine answered it when the recording
// was made.
type result struct {
	campaign              campaign
	real, simulated, kept *recording
}

// good says whether the model is as near to the engine as it is to be.
func (r result) good() bool {
	if math.Abs(r.real.hits().rate()-r.simulated.hits().rate()) > maxHitGap {
		return false
	}
	if r.campaign.flight > 0 {
		return true
	}
	n := len(r.real.Rows)
	return float64(equal(r.real, r.simulated)) >= minEqual*float64(n) && r.real.Preemptions == r.simulated.Preemptions
}

const columns = "%-13s %-9s %8v %14v %14v %9v %9v %12v %7v\n"

func header(w io.Writer) {
	fmt.Fprintf(w, columns, "engine", "campaign", "requests", "model equal", "record equal", "hit vLLM", "hit model", "preemptions", "seconds")
}

func (r result) print(w io.Writer, took time.Duration) {
	share := func(n int) string { return fmt.Sprintf("%d %.2f%%", n, 100*float64(n)/float64(len(r.real.Rows))) }
	percent := func(h hits) string { return fmt.Sprintf("%.2f%%", 100*h.rate()) }
	fmt.Fprintf(w, columns, r.real.Name, r.real.Campaign, len(r.real.Rows), share(equal(r.real, r.simulated)), share(equal(r.real, r.kept)),
		percent(r.real.hits()), percent(r.simulated.hits()), fmt.Sprintf("%d / %d", r.real.Preemptions, r.simulated.Preemptions),
		int(took.Seconds()))
	if r.good() {
		return
	}
	shown := 0
	for i, x := range r.real.Rows {
		if y := r.simulated.Rows[i]; x != y && shown < 10 && r.campaign.flight == 0 {
			fmt.Fprintf(w, "  number %d, session %d, turn %d, %d tokens: vLLM hit %d, the model %d\n", i, x.Session, x.Turn, x.Prompt, x.Cached, y.Cached)
			shown++
		}
	}
	fmt.Fprintf(w, "  beyond the bounds: %.0f%% equal and as many preemptions, or hit rates within %.2f for free clients\n", 100*minEqual, maxHitGap)
}
