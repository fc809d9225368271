package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
)

// report is what a soak found. Its JSON names are stable. Names that end in _s are seconds, in _bytes bytes; all others that
// are numbers count what they name. Lists that go by replica are in the order of the configuration.
type report struct {
	Envoy string `json:"envoy"`
	// Wasm is the SHA-256 of dist/pinwheel.wasm; Guarded says that it ran behind the guard that lets a request crash it.
	Wasm         string  `json:"wasm_sha256"`
	Guarded      bool    `json:"guarded"`
	Workers      int     `json:"workers"`
	Connections  int     `json:"connections"`
	Replicas     int     `json:"replicas"`
	Seed         uint64  `json:"seed"`
	IdleTimeoutS float64 `json:"idle_timeout_s"`

	Requests uint64  `json:"requests"` // answered with 200 in load_s
	LoadS    float64 `json:"load_s"`
	Rate     float64 `json:"requests_per_s"`
	// Interrupted says that the end was not waited for; LimitReached that there was no time for all requests.
	Interrupted  bool `json:"interrupted"`
	LimitReached bool `json:"limit_reached"`

	Load   tally          `json:"load"`   // what the requests were, those of the checks after the load included
	Events map[string]int `json:"events"` // what was done to the gateway meanwhile

	// Decisions are the plugin's counters by reason, DecisionsKnown those that clients were told of. The plugin may report
	// MissingBound fewer in all: what crashed VMs had decided since the checkpoint before. Missing is how many were; below
	// zero, requests were decided and then cut. At each of the checkpoints the counters were exact but for that.
	Decisions      map[string]uint64 `json:"decisions"`
	DecisionsKnown map[string]uint64 `json:"decisions_known"`
	Missing        int64             `json:"decisions_missing"`
	MissingBound   uint64            `json:"decisions_missing_bound"`
	Checkpoints    int               `json:"checkpoints"`

	// Answers are what each replica counted, AnswersKnown what the clients had of it.
	Answers      []uint64 `json:"answers"`
	AnswersKnown []uint64 `json:"answers_known"`
	// SessionsOpen are the plugin's open sessions after the load, SessionsKnown the clients', SessionsLeft the plugin's once
	// all had been idle for the timeout.
	SessionsOpen  []int `json:"sessions_open"`
	SessionsKnown []int `json:"sessions_known"`
	SessionsLeft  int   `json:"sessions_left"`
	// Wrong counts the crashes that left a replica's count one too high, Repaired those that the plugin found and mended.
	Wrong    int `json:"counts_made_wrong"`
	Repaired int `json:"counts_repaired"`

	Memory  memory   `json:"memory"`
	Samples []sample `json:"samples"` // evenly apart, at most 200

	Violated   int      `json:"violations"`
	Violations []string `json:"violations_first"` // of them at most 20
}

// memory says how flat the sizes of sample stayed after the first tenth of the requests.
type memory struct {
	RSS       trend `json:"rss"`
	Allocated trend `json:"allocated"`
	Heap      trend `json:"heap"`
	Wasm      trend `json:"wasm"`
}

// slopeFrom is the number of requests from which on a slope is judged: before, it shows how memory fills.
const slopeFrom = 1_000_000

// report fills in what the run knows in the end.
func (r *run) report(rep *report) {
	s := r.settings
	rep.Envoy, rep.Wasm, rep.Guarded = r.gateway.version, r.gateway.digest, s.Crashes
	rep.Workers, rep.Connections, rep.Replicas, rep.Seed, rep.IdleTimeoutS = s.Workers, s.Connections, s.Replicas, s.Seed, s.IdleTimeout.Seconds()
	rep.Load = r.total()
	rep.Rate = float64(rep.Requests) / rep.LoadS
	rep.Events, rep.Checkpoints = r.events, r.checkpoints
	rep.Missing, rep.MissingBound, rep.Wrong = r.missing, r.bound, r.ghosts
	rep.Samples = r.series.samples
	rep.Memory = memory{
		RSS:       trendOf(rep.Samples, func(s sample) int64 { return s.RSS }),
		Allocated: trendOf(rep.Samples, func(s sample) int64 { return s.Allocated }),
		Heap:      trendOf(rep.Samples, func(s sample) int64 { return s.Heap }),
		Wasm:      trendOf(rep.Samples, func(s sample) int64 { return s.Wasm }),
	}
	if slope := rep.Memory.RSS.Slope; s.MaxSlope > 0 && rep.Requests >= slopeFrom && slope > s.MaxSlope {
		r.violation("the resident set grew by %.1f MiB for a million requests, the limit is %.1f", slope/(1<<20), s.MaxSlope/(1<<20))
	}
	rep.Violated, rep.Violations = r.violated, r.violations
}

// ok reports whether the run went to its end and kept every promise.
func (rep *report) ok() bool { return rep.Violated == 0 && !rep.Interrupted && !rep.LimitReached }

func (rep *report) write(name string) error {
	text, err := json.MarshalIndent(rep, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(name, append(text, '\n'), 0o644)
}

func (rep *report) print(out io.Writer) {
	t := rep.Load
	fmt.Fprintf(out, "Envoy %s, %d workers; %d requests in %.0f s, %.0f/s, over %d connections\n",
		rep.Envoy, rep.Workers, rep.Requests, rep.LoadS, rep.Rate, rep.Connections)
	fmt.Fprintf(out, "sessions: %d begun, %d released, %d left to expire, %d open at the end\n", t.Began, t.Finished, t.Abandoned, total(rep.SessionsKnown))
	fmt.Fprintf(out, "meanwhile: %v; crashes cut %d requests and refused %d, kills broke %d answers\n", rep.Events, t.Cut, t.Refused, t.Broken)
	fmt.Fprintf(out, "decisions not reported: %d, bound %d; %d checkpoints; wrong counts repaired: %d of %d; sessions left: %d\n",
		rep.Missing, rep.MissingBound, rep.Checkpoints, rep.Repaired, rep.Wrong, rep.SessionsLeft)
	for _, m := range []struct {
		name string
		trend
	}{{"resident set", rep.Memory.RSS}, {"allocated", rep.Memory.Allocated}, {"heap", rep.Memory.Heap}, {"wasm memories", rep.Memory.Wasm}} {
		fmt.Fprintf(out, "%s: %.1f MiB, at the end %.1f, max/min %.2f, %+.2f MiB for a million requests\n",
			m.name, mib(m.First), mib(m.Last), m.MaxOverMin, m.Slope/(1<<20))
	}
	for _, v := range rep.Violations {
		fmt.Fprintln(out, "VIOLATED:", v)
	}
	switch {
	case rep.Violated > 0:
		fmt.Fprintf(out, "%d violations\n", rep.Violated)
	case rep.Interrupted:
		fmt.Fprintln(out, "interrupted: nothing was violated until then")
	case rep.LimitReached:
		fmt.Fprintln(out, "the time limit came first: nothing was violated until then")
	default:
		fmt.Fprintln(out, "every answer was right, and every count is exact")
	}
}

func total(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}
