package replica

import (
	"slices"
	"time"
)

// Latency sums up a quantity over the requests of a log.
type Latency struct {
	Mean, P50, P99 time.Duration
}

// LogLatency sums up a log: times to the first token, between tokens (of requests with two tokens or more), and to the
// last. Percentiles are the nearest rank. O(n log n).
func LogLatency(log []EngineRecord) (ttft, tpot, e2e Latency) {
	var first, between, whole []time.Duration
	for _, r := range log {
		first, whole = append(first, r.TTFT()), append(whole, r.E2E())
		if r.Output > 1 {
			between = append(between, r.TPOT())
		}
	}
	return latency(first), latency(between), latency(whole)
}

func latency(d []time.Duration) Latency {
	if len(d) == 0 {
		return Latency{}
	}
	slices.Sort(d)
	var sum time.Duration
	for _, x := range d {
		sum += x
	}
	rank := func(percent int) time.Duration { return d[(percent*len(d)+99)/100-1] }
	return Latency{Mean: sum / time.Duration(len(d)), P50: rank(50), P99: rank(99)}
}
