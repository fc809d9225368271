package hostsim

import (
	"encoding/json"
	"reflect"
	"slices"
	"testing"
)

func TestCoverage(t *testing.T) {
	p := newProbe(t, "request_headers get 0 nothing\nrequest_headers get 0 nothing\nrequest_headers get 0 :path\nrequest_headers when 2 badptr\nrequest_headers when 2 panic now")
	p.pass()
	s := p.Worker(0).NewStream()
	_, _ = s.RequestHeaders(get, true) // panics
	c := p.Coverage()
	calls := map[string]uint64{}
	for _, cb := range c.Callbacks {
		calls[cb.Name] = cb.Calls
	}
	for name, want := range map[string]uint64{"proxy_on_request_headers": 2, "proxy_on_response_headers": 1, "proxy_on_tick": 0, "_initialize": 3} {
		if got, listed := calls[name]; !listed || got != want {
			t.Errorf("%s: %d calls, listed %v, want %d", name, got, listed, want)
		}
	}
	if _, listed := calls["proxy_abi_version_0_2_1"]; listed {
		t.Error("the ABI marker is no callback")
	}
	answers := map[string]HostCallCoverage{}
	for _, h := range c.HostCalls {
		if _, twice := answers[h.Name]; twice {
			t.Errorf("%s is listed twice", h.Name)
		}
		answers[h.Name] = h
	}
	for _, want := range []HostCallCoverage{
		{"env.proxy_get_header_map_value", 6, []AnswerCoverage{{"NOT_FOUND", 4}, {"OK", 2}}},
		{"env.proxy_http_call", 0, nil},
		{"wasi_snapshot_preview1.fd_prestat_get", 3, []AnswerCoverage{{"errno 8", 3}}},
	} {
		if got := answers[want.Name]; !reflect.DeepEqual(got, want) {
			t.Errorf("%+v, want %+v", got, want)
		}
	}
	text, err := json.Marshal(c)
	ok(t, err)
	var back Coverage
	ok(t, json.Unmarshal(text, &back))
	if !reflect.DeepEqual(back, c) {
		t.Errorf("JSON changes it: %s", text)
	}
}

// A gateway may answer anything: what is above all statuses is counted together.
func TestCoverageOfUnknownAnswers(t *testing.T) {
	p := newProbe(t, "request_headers remove 0 a\nrequest_headers remove 0 a\nrequest_headers remove 0 a\nrequest_headers remove 0 a")
	answers := []Status{61, 62, 63, 200}
	p.OnHostCall(func(_ int, name string) (Status, bool) {
		if name != "env.proxy_remove_header_map_value" {
			return 0, false
		}
		next := answers[0]
		answers = answers[1:]
		return next, true
	})
	p.pass()
	for _, h := range p.Coverage().HostCalls {
		want := []AnswerCoverage{{"other", 2}, {Status(61).String(), 1}, {Status(62).String(), 1}}
		if h.Name == "env.proxy_remove_header_map_value" && !reflect.DeepEqual(h.Answers, want) {
			t.Errorf("%+v, want %+v", h.Answers, want)
		}
	}
}

// A function without a result has no answers.
func TestCoverageOfNoAnswer(t *testing.T) {
	c := newCaller(t, "0.2.1", Envoy140())
	_, err := c.call(phaseRun, "env.emscripten_notify_memory_growth", 3)
	ok(t, err)
	found := false
	for _, h := range c.h.Coverage().HostCalls {
		if h.Name == "env.emscripten_notify_memory_growth" {
			if found = true; h.Calls != 1 || h.Answers != nil {
				t.Errorf("%+v", h)
			}
		}
	}
	if !found {
		t.Error("not listed")
	}
}

func TestCoverageMerges(t *testing.T) {
	a := Coverage{Callbacks: []CallbackCoverage{{"b", 1}, {"d", 2}}, HostCalls: []HostCallCoverage{{"x", 3, []AnswerCoverage{{"OK", 3}}}}}
	b := Coverage{Callbacks: []CallbackCoverage{{"a", 5}, {"d", 7}}, HostCalls: []HostCallCoverage{{"w", 1, nil}, {"x", 9, []AnswerCoverage{{"EMPTY", 5}, {"OK", 1}}}}}
	a.Merge(b)
	want := Coverage{
		Callbacks: []CallbackCoverage{{"a", 5}, {"b", 1}, {"d", 9}},
		HostCalls: []HostCallCoverage{{"w", 1, nil}, {"x", 12, []AnswerCoverage{{"EMPTY", 5}, {"OK", 4}}}},
	}
	if !reflect.DeepEqual(a, want) || b.HostCalls[1].Answers[1].Calls != 1 {
		t.Errorf("%+v; the other %+v", a, b)
	}
	total := Coverage{HostCalls: slices.Clone(b.HostCalls)}
	total.Merge(a)
	if b.HostCalls[1].Answers[1].Calls != 1 {
		t.Errorf("what the total began with is changed: %+v", b)
	}
}
