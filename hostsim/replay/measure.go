package replay

import (
	"slices"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// slowest is how many spans are kept.
const slowest = 24

// measures gathers what turns and sessions took, in seconds. Four bytes each: seven digits are more than a simulation is
// worth, and a million turns stay small.
type measures struct {
	ttft, tpot, e2e, queue        []float32
	ends                          []time.Duration
	lasted                        time.Duration
	prompt, cached, queried, hits int64
	homes, homed                  int // of sessions that have ended, and how many of these have any

	samples
	// last are the spans of the sessions that ended last, a ring.
	last []SessionSpan
	next int
}

// turn adds a turn that was served.
func (m *measures) turn(sent time.Duration, q *replica.Request) {
	m.ttft = append(m.ttft, float32((q.FirstToken - sent).Seconds()))
	m.e2e = append(m.e2e, float32((q.Finished - sent).Seconds()))
	m.queue = append(m.queue, float32((q.Admitted - sent).Seconds()))
	if q.Output > 1 {
		m.tpot = append(m.tpot, float32((q.Finished-q.FirstToken).Seconds()/float64(q.Output-1)))
	}
	m.prompt += int64(q.Prompt)
	m.cached += int64(q.Cached)
	m.queried += q.Queried
	m.hits += q.Found
	m.admitted(q.Admitted, q.Prompt, q.Cached)
}

// session adds a session that has ended. Its spans change hands.
func (m *measures) session(lasted, now time.Duration, s *openSession) {
	m.lasted += lasted
	m.ends = append(m.ends, now)
	if len(s.homes) > 0 {
		m.homes, m.homed = m.homes+len(s.homes), m.homed+1
	}
	span := SessionSpan{Session: s.trace.ID, Turns: s.spans}
	if len(m.last) < slowest {
		m.last = append(m.last, span)
		s.spans = nil
		return
	}
	s.spans, m.last[m.next] = m.last[m.next].Turns[:0], span
	m.next = (m.next + 1) % slowest
}

// finish turns what was gathered into the result.
func (r *run) finish() {
	m, res := &r.measures, &r.result
	res.Samples, res.Slowest = []Sample{}, []SessionSpan{} // lists in JSON, even of nothing
	if n := len(m.ends); n > 0 {
		slices.Sort(m.ends)
		res.Wall = m.ends[n-1].Seconds()
		res.T95 = m.ends[(n*95+99)/100-1].Seconds()
		res.SessionMean = m.lasted.Seconds() / float64(n)
	}
	res.HomesPerSession = ratio(float64(m.homes), float64(m.homed))
	res.HitRate = ratio(float64(m.cached), float64(m.prompt))
	res.ReportedHitRate = ratio(float64(m.hits), float64(m.queried))
	res.QueriesPerPrompt = ratio(float64(m.queried), float64(m.prompt))
	res.Latency = Percentiles{TTFT: percentiles(m.ttft), TPOT: percentiles(m.tpot), E2E: percentiles(m.e2e), Queue: percentiles(m.queue)}
	res.TTFTP50, res.TTFTP99 = at(res.Latency.TTFT, 50), at(res.Latency.TTFT, 99)
	res.TPOTP50, res.TPOTP99 = at(res.Latency.TPOT, 50), at(res.Latency.TPOT, 99)
	res.E2EP50, res.E2EP99 = at(res.Latency.E2E, 50), at(res.Latency.E2E, 99)
	res.QueueP50, res.QueueP99 = at(res.Latency.Queue, 50), at(res.Latency.Queue, 99)
	r.finishReplicas()
	res.Samples = append(res.Samples, m.result()...)
	for i := range m.last {
		res.Slowest = append(res.Slowest, m.last[(m.next+len(m.last)-1-i)%len(m.last)])
	}
	decisions, spent := 0, time.Duration(0)
	for _, g := range r.gateways {
		decisions, spent = decisions+g.decisions, spent+g.spent
	}
	res.DecisionsPerSecond = ratio(float64(decisions), spent.Seconds())
	res.round()
}

func (r *run) finishReplicas() {
	res := &r.result
	var requests, busy []float64
	var kv, total float64
	for _, s := range r.servers {
		st := s.engine.Stats()
		s.result.Preemptions, s.result.Busy = st.Preemptions, st.Busy.Seconds()
		res.Preemptions += st.Preemptions
		res.KVUseMax = max(res.KVUseMax, s.kvMax)
		kv, total = kv+s.kv, total+s.result.Busy
		requests, busy = append(requests, float64(s.result.Requests)), append(busy, s.result.Busy)
		res.Replicas = append(res.Replicas, s.result)
	}
	res.KVUseMean = ratio(kv, total)
	res.RequestsMaxMin, res.RequestsMaxMean = spread(requests)
	res.BusyMaxMin, res.BusyMaxMean = spread(busy)
}

// spread compares the largest of values with the smallest, 0 where that is zero, and with their mean.
func spread(values []float64) (maxMin, maxMean float64) {
	var sum float64
	for _, v := range values {
		sum += v
	}
	most := slices.Max(values)
	return ratio(most, slices.Min(values)), ratio(most*float64(len(values)), sum)
}

// ratio is a/b, 0 where b is 0.
func ratio(a, b float64) float64 {
	if b == 0 {
		return 0
	}
	return a / b
}

// percentiles sorts values and returns their 0th to 100th percentile by the nearest rank, or nothing.
func percentiles(values []float32) []float64 {
	if len(values) == 0 {
		return []float64{}
	}
	slices.Sort(values)
	out := make([]float64, 101)
	for p := range out {
		rank := (p*len(values) + 99) / 100
		out[p] = millionth(float64(values[max(rank, 1)-1]))
	}
	return out
}

func at(percentiles []float64, p int) float64 {
	if len(percentiles) == 0 {
		return 0
	}
	return percentiles[p]
}
