package main

import (
	"fmt"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// validations are the published figures that the page compares with, and how ours come about: from the page's run with that
// label.
var validations = []struct {
	what, source, published, run string
	ours                         ourFigure
}{
	{"hit rate, a session keeps its engine", nemoRL, "93.5%", "28 engines", percent("session_hash")},
	{"hit rate, a counter in each client process", nemoRL, "85.6%", "28 engines", percent("per_process_counter")},
	{"the same, 16 processes", nemoRL, "85.6%", "28 engines, 16 processes", percent("per_process_counter")},
	{"wall, `cache_aware` by hash", nemoRL, ".93", "28 engines", by(wall, "cache_aware", "session_hash")},
	{"requests max/min, hash", nemoRL, "2.47", "28 engines", figure(spread, "session_hash")},
	{"requests max/min, `cache_aware`", nemoRL, "1.87", "28 engines", figure(spread, "cache_aware")},
	{"hit rate, stable hash", nemoRL, "91.8%", "12 engines, 4 processes", percent("session_hash")},
	{"wall, `cache_aware` by hash", nemoRL, ".88", "12 engines, 4 processes", by(wall, "cache_aware", "session_hash")},
	{"wall, counter by hash", nemoRL, "3.19", "12 engines, 4 processes", by(wall, "per_process_counter", "session_hash")},
	{"hits by all lookups, counter", nemoRL, "12.3%", "12 engines, 4 processes", lookups},
	{"wall, counter by hash", nemoRL, "3.19", "12 engines, 16 processes", by(wall, "per_process_counter", "session_hash")},
	{"hits by all lookups, counter", nemoRL, "12.3%", "12 engines, 16 processes", lookups},
	{"wall, counter by hash", nemoRL, "3.19", "12 engines, 4 processes, half the pool", by(wall, "per_process_counter", "session_hash")},
	{"hits by all lookups, counter", nemoRL, "12.3%", "12 engines, 4 processes, half the pool", lookups},
	{"wall, counter by hash, cap 48", nemoRL, "no collapse", "12 engines, 16 processes, cap 48", by(wall, "per_process_counter", "session_hash")},
	{"hit rate, hash, whole pool", primeRL, ".93", "whole pool", figure(hitRate, "session_hash")},
	{"hit rate, hash, a third of it", primeRL, ".16", "third of the pool", figure(hitRate, "session_hash")},
	{"wall, a third of the pool by the whole", primeRL, "2.4", "third of the pool", byRun(wall, "session_hash", "whole pool")},
	{"session time, least loaded by hash, low pressure", skyRL, ".93", "low pressure", by(sessionMean, "sticky_least_loaded", "session_hash")},
	{"the same, moderate pressure", skyRL, ".58", "moderate pressure", by(sessionMean, "sticky_least_loaded", "session_hash")},
	{"the same, high pressure", skyRL, ".94", "high pressure", by(sessionMean, "sticky_least_loaded", "session_hash")},
}

const (
	nemoRL  = "[NeMo RL](https://github.com/NVIDIA-NeMo/RL/pull/3663)"
	primeRL = "[prime-rl](https://github.com/PrimeIntellect-ai/prime-rl/pull/3255)"
	skyRL   = "[SkyRL](https://github.com/NovaSky-AI/SkyRL/pull/1791)"
)

// ourFigure makes the page's text of a figure of a run.
type ourFigure func(run string, of func(run, policy string) []replay.SeedResult) string

func percent(policy string) ourFigure {
	return func(run string, of func(run, policy string) []replay.SeedResult) string {
		return over(of(run, policy), "%.1f", 100, hitRate) + "%"
	}
}

func figure(what func(*replay.SeedResult) float64, policy string) ourFigure {
	return func(run string, of func(run, policy string) []replay.SeedResult) string {
		return over(of(run, policy), "%.2f", 1, what)
	}
}

func lookups(run string, of func(run, policy string) []replay.SeedResult) string {
	return over(of(run, "per_process_counter"), "%.1f", 100, hitsByLookups) + "%"
}

// by compares two policies, seed by seed.
func by(what func(*replay.SeedResult) float64, a, b string) ourFigure {
	return func(run string, of func(run, policy string) []replay.SeedResult) string {
		return compared(what, of(run, a), of(run, b))
	}
}

// byRun compares a policy's run with that of another label, seed by seed.
func byRun(what func(*replay.SeedResult) float64, policy, other string) ourFigure {
	return func(run string, of func(run, policy string) []replay.SeedResult) string {
		return compared(what, of(run, policy), of(other, policy))
	}
}

func compared(what func(*replay.SeedResult) float64, as, bs []replay.SeedResult) string {
	low, high := what(&as[0])/what(&bs[0]), 0.
	for i := range as {
		low, high = min(low, what(&as[i])/what(&bs[i])), max(high, what(&as[i])/what(&bs[i]))
	}
	return fmt.Sprintf("%.2f [%.2f..%.2f]", ratio(as, bs, what), low, high)
}

// validationTable has a row for each of validations.
func validationTable(runs []pageRun) string {
	var b strings.Builder
	b.WriteString("| what | source | published | ours | run |\n|---|---|---|---|---|\n")
	of := func(run, policy string) []replay.SeedResult { return seedsOf(runs, run, policy) }
	for _, v := range validations {
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", v.what, v.source, v.published, v.ours(v.run, of), v.run)
	}
	return b.String()
}

// seedsOf finds the runs of a policy under the label of a command.
func seedsOf(runs []pageRun, label, policy string) []replay.SeedResult {
	for _, r := range runs {
		if r.label != label {
			continue
		}
		for _, p := range r.result.Policies {
			if p.Policy == policy {
				return p.Seeds
			}
		}
	}
	return nil
}
