package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// demoRow is what one replica, or all of them, served in one arm.
type demoRow struct {
	Replica      string `json:"replica,omitempty"`
	Sessions     int    `json:"sessions"`
	Turns        int    `json:"turns"`
	PromptTokens int    `json:"prompt_tokens"`
	CachedTokens int    `json:"cached_tokens"`
}

// HitRate is the share of prompt tokens found in the cache, 0 to 1.
func (r demoRow) HitRate() float64 {
	if r.PromptTokens == 0 {
		return 0
	}
	return float64(r.CachedTokens) / float64(r.PromptTokens)
}

// demoArm is one arm's part of the result.
type demoArm struct {
	Name     string    `json:"name"`
	Replicas []demoRow `json:"replicas"`
	Total    demoRow   `json:"total"`
	HitRate  float64   `json:"hit_rate"`
	Seconds  float64   `json:"seconds"`
	// Moves are turns that another replica served than the session's turn before.
	Moves []string `json:"moves,omitempty"`
}

// demoResult is what the demo prints.
type demoResult struct {
	Trace        string    `json:"trace"`
	Sessions     int       `json:"sessions"`
	Turns        int       `json:"turns"`
	CacheTokens  int       `json:"cache_tokens_per_replica"` // 0: without bound
	UniqueTokens int       `json:"unique_tokens"`
	IdealHitRate float64   `json:"ideal_hit_rate"`
	Speed        int       `json:"speed"`
	Arms         []demoArm `json:"arms"`

	disagree error
}

func (d *demoRun) result(arms ...*arm) *demoResult {
	r := &demoResult{Trace: trace.BundledName, Sessions: len(d.sessions), Turns: d.turns(), Speed: demoSpeed,
		CacheTokens: d.flags.cacheTokens / cacheBlockTokens * cacheBlockTokens}
	var all trace.Counter
	for _, s := range d.sessions {
		_ = all.Add(s) // fails where blocks differ in size: a WEKA trace has one
	}
	stats := all.Stats()
	r.IdealHitRate, r.UniqueTokens = stats.IdealHitRate, stats.UniqueBlocks*cacheBlockTokens
	for _, a := range arms {
		out := demoArm{Name: a.name, Replicas: a.rows(), Seconds: a.took.Round(time.Millisecond).Seconds(), Moves: a.sortedMoves()}
		for _, row := range out.Replicas {
			out.Total.Turns += row.Turns
			out.Total.PromptTokens += row.PromptTokens
			out.Total.CachedTokens += row.CachedTokens
		}
		out.Total.Sessions, out.HitRate = len(d.sessions), out.Total.HitRate()
		r.Arms = append(r.Arms, out)
		if err := a.agrees(); err != nil && r.disagree == nil {
			r.disagree = err
		}
	}
	return r
}

// verdict is the error that makes the demo fail: the last arm, the plugin's, moved a session.
func (r *demoResult) verdict() error {
	if r.disagree != nil {
		return r.disagree
	}
	last := r.Arms[len(r.Arms)-1]
	if n := len(last.Moves); n > 0 {
		return fmt.Errorf("%s moved sessions %d times although every replica was there: %s", last.Name, n,
			strings.Join(last.Moves[:min(n, 5)], "; "))
	}
	if last.Total.Turns != r.Turns {
		return fmt.Errorf("%s: %d turns were served, not %d", last.Name, last.Total.Turns, r.Turns)
	}
	return nil
}

// table prints the arms side by side, and how to go on.
func (r *demoResult) table(w io.Writer, stay bool, listen string) error {
	n := len(r.Arms[0].Replicas)
	capacity := "a prefix cache without bound"
	if r.CacheTokens > 0 {
		capacity = fmt.Sprintf("a prefix cache of %s tokens (LRU), %s together", thousands(r.CacheTokens), thousands(n*r.CacheTokens))
	}
	fmt.Fprintf(w, "\n%d recorded agent sessions, %d turns, all at once, %dx faster than recorded\n", r.Sessions, r.Turns, r.Speed)
	fmt.Fprintf(w, "trace %s: %s different prompt tokens\n", r.Trace, thousands(r.UniqueTokens))
	fmt.Fprintf(w, "%d simulated replicas, each with %s\n\n", n, capacity)
	r.rows(w)
	r.summary(w)
	address := "127.0.0.1:8080"
	if stay {
		address = listen
	} else {
		fmt.Fprintln(w, "\nTo go on by hand, keep such a gateway up on 127.0.0.1:8080:\n  make serve")
	}
	fmt.Fprintln(w)
	_, err := fmt.Fprint(w, curlLines(address))
	return err
}

// rows prints a line for each replica and one for all, the arms beside each other.
func (r *demoResult) rows(w io.Writer) {
	line := func(first string, cells func(demoArm) string) {
		text := fmt.Sprintf("%8s", first)
		for _, a := range r.Arms {
			text += "  |  " + cells(a)
		}
		fmt.Fprintln(w, strings.TrimRight(text, " "))
	}
	numbers := func(row demoRow) string {
		return fmt.Sprintf("%8d  %5d  %8.1f%%", row.Sessions, row.Turns, 100*row.HitRate())
	}
	line("", func(a demoArm) string { return fmt.Sprintf("%-26s", a.Name) })
	line("replica", func(demoArm) string { return "sessions  turns  cache hit" })
	for i := range r.Arms[0].Replicas {
		line(fmt.Sprint(i+1), func(a demoArm) string { return numbers(a.Replicas[i]) })
	}
	line("all", func(a demoArm) string { return numbers(a.Total) })
}

// summary says in words what the table shows.
func (r *demoResult) summary(w io.Writer) {
	fmt.Fprintf(w, "\nideal cache hit (one cache without bound for everybody): %.1f%%\n", 100*r.IdealHitRate)
	for _, a := range r.Arms {
		fmt.Fprintf(w, "%s: %s prompt tokens computed, %d turns away from their session's replica, %.1f s\n", a.Name,
			thousands(a.Total.PromptTokens-a.Total.CachedTokens), len(a.Moves), a.Seconds)
	}
}

// thousands writes 1234567 as 1,234,567.
func thousands(n int) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
