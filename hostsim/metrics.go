package hostsim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// MetricKind is a metric's type. Source: proxy-wasm specification 0.2.1, proxy_metric_type_t.
type MetricKind uint32

const (
	MetricCounter   MetricKind = 0
	MetricGauge     MetricKind = 1
	MetricHistogram MetricKind = 2
)

// String returns counter, gauge or histogram.
func (k MetricKind) String() string {
	switch k {
	case MetricCounter:
		return "counter"
	case MetricGauge:
		return "gauge"
	case MetricHistogram:
		return "histogram"
	}
	return fmt.Sprintf("MetricKind(%d)", uint32(k))
}

// Metric is one statistic as it stands.
type Metric struct {
	// Name is as the plugin defined it.
	Name string
	// Kind is the type.
	Kind MetricKind
	// Value is a counter's or gauge's value. A gauge below zero shows as 2^64 minus its distance, as in Envoy's own
	// statistics; Signed undoes that.
	Value uint64
	// Count and Sum are a histogram's number of records and their total.
	Count, Sum uint64
}

// Signed returns Value as a gauge that may be negative.
func (m Metric) Signed() int64 { return int64(m.Value) }

// stat is one statistic of the host, shared by every virtual machine that defines it.
type stat struct {
	name  string
	kind  MetricKind
	value atomic.Uint64
	count atomic.Uint64 // histograms only
}

type statKey struct {
	name string
	kind MetricKind
}

// registry holds every statistic of a host by name and type.
type registry struct {
	mu    sync.Mutex
	stats map[statKey]*stat
}

func (r *registry) define(kind MetricKind, name string) *stat {
	r.mu.Lock()
	defer r.mu.Unlock()
	k := statKey{name, kind}
	s := r.stats[k]
	if s == nil {
		s = &stat{name: name, kind: kind}
		r.stats[k] = s
	}
	return s
}

func (r *registry) list() []Metric {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Metric, 0, len(r.stats))
	for _, s := range r.stats {
		out = append(out, s.metric())
	}
	slices.SortFunc(out, func(a, b Metric) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return int(a.Kind) - int(b.Kind)
	})
	return out
}

func (r *registry) find(name string) (Metric, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for kind := MetricCounter; kind <= MetricHistogram; kind++ {
		if s := r.stats[statKey{name, kind}]; s != nil {
			return s.metric(), true
		}
	}
	return Metric{}, false
}

func (s *stat) metric() Metric {
	m := Metric{Name: s.name, Kind: s.kind}
	if s.kind == MetricHistogram {
		m.Count, m.Sum = s.count.Load(), s.value.Load()
	} else {
		m.Value = s.value.Load()
	}
	return m
}

// increment follows Envoy: a counter takes only positive offsets, a gauge any, a histogram none.
func (s *stat) increment(offset int64) Status {
	switch {
	case s.kind == MetricHistogram, s.kind == MetricCounter && offset <= 0:
		return StatusBadArgument
	}
	s.value.Add(uint64(offset))
	return StatusOK
}

// record adds to a counter, sets a gauge, and takes a histogram's sample.
func (s *stat) record(value uint64) {
	switch s.kind {
	case MetricGauge:
		s.value.Store(value)
	case MetricHistogram:
		s.count.Add(1)
		s.value.Add(value)
	default:
		s.value.Add(value)
	}
}
