package hostsim

import "testing"

func TestMetrics(t *testing.T) {
	p := newProbe(t, `
		configure mdef 0 hits
		configure mdef 1 open
		configure mdef 2 size
		configure mdef 9 odd
		request_headers minc hits 2
		request_headers minc hits 0
		request_headers minc hits -1
		request_headers mrec hits 5
		request_headers mget hits
		request_headers minc open 2
		request_headers minc open -5
		request_headers mget open
		request_headers mrec open 9
		request_headers minc open -10
		request_headers mrec size 100
		request_headers mrec size 50
		request_headers minc size 1
		request_headers mget size
		request_headers minc unknown 1`, func(c *Config) { c.Workers = 2 })
	p.pass()
	p.results(`
		minc hits 2 = 0
		minc hits 0 = 2
		minc hits -1 = 2
		mrec hits 5 = 0
		mget hits = 0 7
		minc open 2 = 0
		minc open -5 = 0
		mget open = 0 18446744073709551613
		mrec open 9 = 0
		minc open -10 = 0
		mrec size 100 = 0
		mrec size 50 = 0
		minc size 1 = 2
		mget size = 2
		minc unknown 1 = 1`)
	s := p.Worker(1).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	if m, ok := p.Metric("hits"); !ok || m.Value != 14 || m.Kind != MetricCounter {
		t.Errorf("hits over both workers: %+v", m)
	}
	if m, _ := p.Metric("open"); m.Signed() != -1 {
		t.Errorf("open %+v", m)
	}
	if m, _ := p.Metric("size"); m.Count != 4 || m.Sum != 300 {
		t.Errorf("size %+v", m)
	}
	if got := p.Metrics(); len(got) != 3 || got[0].Name != "hits" || got[2].Name != "size" {
		t.Errorf("metrics %+v", got)
	}
	if _, ok := p.Metric("odd"); ok {
		t.Error("a metric of an unknown type was defined")
	}
}

// One name may be defined as often as one likes and stays one metric.
func TestDefiningAMetricAgain(t *testing.T) {
	p := newProbe(t, `
		request_headers mdef 0 hits
		request_headers minc hits 1`)
	p.pass()
	p.pass()
	if m, _ := p.Metric("hits"); m.Value != 2 {
		t.Errorf("hits %d", m.Value)
	}
}
