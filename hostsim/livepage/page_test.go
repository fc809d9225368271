package livepage

import (
	"net/http/httptest"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
)

// The page answers what only reads, under a name that no other site can take, and to no other site.
func TestWhoMayRead(t *testing.T) {
	p := newPage(Config{})
	p.Close() // so that /events answers at once
	for _, tt := range []struct {
		method, path, host, from string
		want                     int
	}{
		{"GET", "/", "127.0.0.1:8081", "", 200},
		{"HEAD", "/", "localhost:8081", "none", 200},
		{"GET", "/", "[::1]:8081", "cross-site", 200}, // a link to the page
		{"GET", "/", "10.1.2.3", "", 200},
		{"GET", "/", "evil.example:8081", "", 403},
		{"GET", "/", "127.0.0.1.evil.example", "", 403},
		{"POST", "/", "127.0.0.1:8081", "", 405},
		{"DELETE", "/events", "127.0.0.1:8081", "", 405},
		{"GET", "/other", "127.0.0.1:8081", "", 404},
		{"GET", "/events", "127.0.0.1:8081", "cross-site", 403},
		{"GET", "/events", "127.0.0.1:8081", "same-site", 403},
		{"GET", "/events", "evil.example", "same-origin", 403},
		{"GET", "/events", "127.0.0.1:8081", "same-origin", 503},
	} {
		r := httptest.NewRequest(tt.method, tt.path, nil)
		r.Host = tt.host
		if tt.from != "" {
			r.Header.Set("Sec-Fetch-Site", tt.from)
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		if w.Code != tt.want || w.Header().Get("Access-Control-Allow-Origin") != "" || w.Header().Get("Content-Security-Policy") != policy ||
			w.Header().Get("Cross-Origin-Resource-Policy") != "same-origin" {
			t.Errorf("%+v: %d %v", tt, w.Code, w.Header())
		}
	}
}

// The page is one file without anything from elsewhere, nor what the policy would stop.
func TestDocument(t *testing.T) {
	for _, foreign := range []string{"http://", "https://", "//cdn", "@import", "url(", "innerHTML", "insertAdjacent", "document.write", "eval(", " style=", " onclick="} {
		at := strings.Index(strings.ReplaceAll(document, "http://www.w3.org/2000/svg", ""), foreign)
		if at >= 0 {
			t.Errorf("the page has %q", foreign)
		}
	}
	if n := len(regexp.MustCompile(`<(script|style)>`).FindAllString(document, -1)); n != 2 || !strings.Contains(document, js) || !strings.Contains(document, css) {
		t.Errorf("%d scripts and styles", n)
	}
	if !regexp.MustCompile(`^default-src 'none'; connect-src 'self'; img-src data:; style-src 'sha256-[^ ]+'; script-src 'sha256-[^ ]+'; `).MatchString(policy) {
		t.Errorf("policy %s", policy)
	}
}

// A replica's numbers are the gateway's, and the plugin's gauges with its address at their end.
func TestReplicas(t *testing.T) {
	hosts := []gateway.Upstream{
		{Cluster: "llm", Address: "10.0.0.1:80", Requests: 7, Running: 2}, {Cluster: "llm", Address: "[fd00::1]:80", Requests: 1, Failures: 3},
		{Cluster: "llm", Address: "model:80"}, {Cluster: "llm", Address: "0.0.1:80", Requests: 1},
	}
	p := New(Config{Upstreams: func() []gateway.Upstream { return hosts }, Metrics: func() []hostsim.Metric {
		minus := int64(-1)
		return []hostsim.Metric{
			{Name: "x_sessions.pool.a.replica.10.0.0.1:80", Kind: hostsim.MetricGauge, Value: 3},
			{Name: "x_sessions.pool.b.b.replica.10.0.0.1:80", Kind: hostsim.MetricGauge, Value: 4},
			{Name: "x_sessions.replica.[fd00::1]:80", Kind: hostsim.MetricGauge, Value: uint64(minus)},
			{Name: "x_cooling.replica.0.0.1:80", Kind: hostsim.MetricGauge, Value: 1},
			{Name: "x_total.replica.10.0.0.1:80", Kind: hostsim.MetricCounter, Value: 9},
			{Name: "x_sessions.10.0.0.9:80", Kind: hostsim.MetricGauge, Value: 9},
			{Name: "alone", Kind: hostsim.MetricGauge, Value: 9},
		}
	}, PromptTokens: func(address string) (cached, all int64) {
		if address == "model:80" {
			cached, all = 94, 100
		}
		return cached, all
	}})
	want := []replica{
		{Cluster: "llm", Address: "10.0.0.1:80", Running: 2, Requests: 7, State: "ok", Gauges: map[string]int64{"x_sessions": 7}},
		{Cluster: "llm", Address: "[fd00::1]:80", Requests: 1, Failures: 3, State: "failing", Gauges: map[string]int64{"x_sessions": -1}},
		{Cluster: "llm", Address: "model:80", State: "idle", Gauges: map[string]int64{}, Cached: 94, PromptTokens: 100},
		{Cluster: "llm", Address: "0.0.1:80", Requests: 1, State: "cooling", Gauges: map[string]int64{"x_cooling": 1}},
	}
	if got := p.replicas(); !reflect.DeepEqual(got, want) {
		t.Errorf("got\n%+v\nwant\n%+v", got, want)
	}
}
