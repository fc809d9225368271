package report

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// kind says what a metric's numbers are, and so how they are written.
type kind int

const (
	plain kind = iota
	count
	seconds
	share // 0 to 1, written as percent
	ratio // written with two decimals
)

// metric is one figure of a run. want is -1 where less is better, 1 where more is, 0 where neither says anything.
type metric struct {
	name string
	kind kind
	want int
	of   func(*replay.SeedResult) float64
	// turns says that without turns there is no such figure.
	turns bool
	// long says in a few words what it is, where a page has it on its own.
	long string
}

var metrics = []metric{
	{"wall", seconds, -1, func(s *replay.SeedResult) float64 { return s.Wall }, false, "until the last session ended"},
	{"t95", seconds, -1, func(s *replay.SeedResult) float64 { return s.T95 }, false, "until 95% of sessions ended"},
	{"hit rate", share, 1, func(s *replay.SeedResult) float64 { return s.HitRate }, true, "prompt tokens found in a cache"},
	{"queries/prompt", ratio, -1, func(s *replay.SeedResult) float64 { return s.QueriesPerPrompt }, true, ""},
	{"TTFT p50", seconds, -1, func(s *replay.SeedResult) float64 { return s.TTFTP50 }, true, "time to first token"},
	{"TTFT p99", seconds, -1, func(s *replay.SeedResult) float64 { return s.TTFTP99 }, true, "time to first token"},
	{"TPOT p50", seconds, -1, func(s *replay.SeedResult) float64 { return s.TPOTP50 }, true, "time per output token"},
	{"queue p99", seconds, -1, func(s *replay.SeedResult) float64 { return s.QueueP99 }, true, "wait for the engine"},
	{"requests max/mean", ratio, -1, func(s *replay.SeedResult) float64 { return s.RequestsMaxMean }, true, "busiest by the mean"},
	{"busy max/mean", ratio, -1, func(s *replay.SeedResult) float64 { return s.BusyMaxMean }, true, "busiest by the mean"},
	{"preemptions", count, -1, func(s *replay.SeedResult) float64 { return float64(s.Preemptions) }, false, ""},
	{"moves", count, -1, func(s *replay.SeedResult) float64 { return float64(s.Moves) }, false, ""},
	{homes, ratio, -1, func(s *replay.SeedResult) float64 { return s.HomesPerSession }, true, "replicas that served a session"},
	{"errors", count, -1, func(s *replay.SeedResult) float64 { return float64(s.Errors) }, false, "turns that nobody served"},
	// What follows has no column in Table.
	{"reported hit rate", share, 1, func(s *replay.SeedResult) float64 { return s.ReportedHitRate }, true, ""},
	{"TPOT p99", seconds, -1, func(s *replay.SeedResult) float64 { return s.TPOTP99 }, true, ""},
	{"E2E p50", seconds, -1, func(s *replay.SeedResult) float64 { return s.E2EP50 }, true, ""},
	{"E2E p99", seconds, -1, func(s *replay.SeedResult) float64 { return s.E2EP99 }, true, ""},
	{"queue p50", seconds, -1, func(s *replay.SeedResult) float64 { return s.QueueP50 }, true, ""},
	{"session, mean", seconds, -1, func(s *replay.SeedResult) float64 { return s.SessionMean }, true, ""},
	{"retries", count, -1, func(s *replay.SeedResult) float64 { return float64(s.Retries) }, false, ""},
	{"KV use, mean", share, 0, func(s *replay.SeedResult) float64 { return s.KVUseMean }, true, ""},
	{"KV use, max", share, 0, func(s *replay.SeedResult) float64 { return s.KVUseMax }, true, ""},
	{"decisions/s", plain, 0, func(s *replay.SeedResult) float64 { return s.DecisionsPerSecond }, true, ""},
}

// homes is the metric that only several gateways have. Without it neither its column nor its row is there.
const homes = "homes/session"

func anyHomes(policies []replay.PolicyResult) bool {
	return slices.ContainsFunc(policies, func(p replay.PolicyResult) bool {
		return slices.ContainsFunc(p.Seeds, func(s replay.SeedResult) bool { return s.HomesPerSession > 0 })
	})
}

// spread is a metric over the seeds of a policy. n is how many seeds have a number; without one the rest says nothing.
type spread struct {
	n                int
	median, min, max float64
	all              []float64 // by seed; NaN where there is none
}

func (m *metric) spread(p *replay.PolicyResult) spread {
	s := spread{}
	var known []float64
	for i := range p.Seeds {
		v := m.of(&p.Seeds[i])
		if m.turns && !m.known(&p.Seeds[i]) || math.IsInf(v, 0) {
			v = math.NaN()
		}
		s.all = append(s.all, v)
		if !math.IsNaN(v) {
			known = append(known, v)
		}
	}
	if s.n = len(known); s.n == 0 {
		return s
	}
	slices.Sort(known)
	s.min, s.max = known[0], known[s.n-1]
	s.median = (known[(s.n-1)/2] + known[s.n/2]) / 2
	return s
}

// known tells whether a run has turns that the metric is about: those that were served, but decisions were made about all.
func (m *metric) known(s *replay.SeedResult) bool {
	switch {
	case m.kind == plain:
		return s.Turns > 0
	case m.name == homes:
		return s.HomesPerSession > 0
	case strings.HasPrefix(m.name, "TPOT") && s.TPOTP99 == 0:
		return false // no turn has two tokens
	}
	return s.Turns > s.Errors
}

// metricOf is the metric of that name, which there is.
func metricOf(name string) *metric {
	return &metrics[slices.IndexFunc(metrics, func(m metric) bool { return m.name == name })]
}

// column is a metric for all policies, with one unit and one number of decimals.
type column struct {
	*metric
	cells    []spread // by policy
	unit     string
	factor   float64
	decimals int
}

func newColumn(m *metric, policies []replay.PolicyResult) column {
	c := column{metric: m, factor: 1}
	largest := 0.0
	for i := range policies {
		c.cells = append(c.cells, m.spread(&policies[i]))
		largest = max(largest, c.cells[i].max)
	}
	c.unit, c.factor, c.decimals = unitOf(m.kind, largest)
	return c
}

// unitOf is how numbers of a kind are written of which the largest is known: their unit, what to multiply them by, and decimals.
func unitOf(k kind, largest float64) (unit string, factor float64, decimals int) {
	factor = 1
	switch {
	case k == count || k == plain:
		return "", 1, 0
	case k == ratio:
		return "", 1, 2
	case k == share:
		return "%", 100, 1
	case largest == 0:
		return "s", 1, 0
	}
	unit = "s"
	if largest < 1 {
		unit, factor = "ms", 1000
	}
	switch l := largest * factor; {
	case l < 10:
		decimals = 2
	case l < 100:
		decimals = 1
	}
	return unit, factor, decimals
}

// text is v as this column writes it.
func (c *column) text(v float64) string { return number(v*c.factor, c.decimals) }

// head is the column's name with its unit.
func (c *column) head() string {
	if c.unit == "" {
		return c.name
	}
	return c.name + ", " + c.unit
}

// best tells whether policy i has the best median as it is written, and not all of them have it.
func (c *column) best(i int) bool {
	if c.want == 0 || c.cells[i].n == 0 {
		return false
	}
	own, others := c.text(c.cells[i].median), false
	for _, o := range c.cells {
		if o.n == 0 || c.text(o.median) == own {
			continue
		}
		if (o.median-c.cells[i].median)*float64(c.want) > 0 {
			return false
		}
		others = true
	}
	return others
}

// number is v with a comma between thousands.
func number(v float64, decimals int) string {
	text := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	sign := ""
	if v < 0 && strings.ContainsAny(text, "123456789") {
		sign = "-"
	}
	whole, rest := text, ""
	if dot := strings.IndexByte(text, '.'); dot >= 0 {
		whole, rest = text[:dot], text[dot:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + whole + rest
}
