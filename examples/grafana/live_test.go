package main

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// atRest are queries that stay at 0 in the fleet of this test; all others must have shown more than that. Kept in step
// with the dashboard: one that is none of its queries fails.
var atRest = []string{
	"pinwheel_panics_total", "pinwheel_drift_repaired_total", "pinwheel_errors_total", "pinwheel_cas_retries_total",
	"envoy_wasm_pinwheel_vm_reload", "envoy_cluster_upstream_rq_pending_overflow", "vllm:num_requests_waiting",
}

// Real gateways, of which one tags its statistics as Istio does, before engines of which one dies and comes back, under
// agents that release some of their sessions: each query of the dashboard and each recording rule has an answer from
// them, which agrees with what the plugin itself says.
func TestDashboardShowsAFleet(t *testing.T) {
	var engines []*engine
	var addrs []string
	for range 3 {
		e := startEngine(t)
		engines, addrs = append(engines, e), append(addrs, e.addr)
	}
	plain, plainURL := startGateway(t, engines, false)
	istio, istioURL := startGateway(t, engines, true)
	prom := startPrometheus(t, []string{plain.Admin.Addr, istio.Admin.Addr}, addrs)
	begin := time.Now()
	agents := startFleet(t, 6, plainURL, istioURL)

	prom.waitFor(t, `sum by (instance) (count_over_time(pinwheel_sessions[1m])) >= bool 3 * 15`)
	prom.waitFor(t, `sum(pinwheel_expired_total) > bool 0`)
	engines[2].die()
	prom.waitFor(t, fmt.Sprintf(`sum by (instance) (sum_over_time(pinwheel_cooling{replica="%s"}[1m])) >= bool 6`, engines[2].addr))
	engines[2].comeBack(t)
	prom.waitFor(t, `sum by (instance) (max_over_time(pinwheel_cooling[12s])) == bool 0`)
	prom.waitFor(t, fmt.Sprintf(`pinwheel_sessions{replica="%s"} > bool 0`, engines[2].addr))

	t.Run("queries", func(t *testing.T) { answers(t, prom, begin) })
	t.Run("recording rules", func(t *testing.T) { recorded(t, prom) })
	t.Run("names of both gateways", func(t *testing.T) { sameSeries(t, prom, plain.Admin.Addr, istio.Admin.Addr) })
	t.Run("drawing", func(t *testing.T) { draw(t, prom, begin) })
	agents.end()
	if len(agents.bad) > 0 {
		t.Errorf("%d requests failed, the first: %s", len(agents.bad), agents.bad[0])
	}
	t.Run("figures", func(t *testing.T) {
		agree(t, prom, plain, plainURL)
		agree(t, prom, istio, istioURL)
	})
}

// filled puts values in place of the dashboard's variables, as Grafana does when all are chosen.
func filled(expr string) string {
	expr = strings.ReplaceAll(expr, "$__rate_interval", "5s")
	return regexp.MustCompile(`\$\w+`).ReplaceAllString(expr, ".*")
}

func answers(t *testing.T, prom *database, begin time.Time) {
	var d committed
	load(t, &d)
	quiet := map[string]bool{}
	for _, p := range d.Panels {
		for _, q := range p.Targets {
			list, err := prom.span(t.Context(), filled(q.Expr), begin, time.Now())
			if err != nil {
				t.Errorf("%s: %v", p.Title, err)
			}
			var all []float64
			for _, s := range list {
				all = append(all, s.finite()...)
			}
			rests := slices.IndexFunc(atRest, func(name string) bool { return strings.Contains(q.Expr, name+"{") })
			switch {
			case len(all) == 0:
				t.Errorf("%s: no data for %s", p.Title, filled(q.Expr))
			case rests >= 0:
				quiet[atRest[rests]] = true
			case slices.Max(all) <= 0:
				t.Errorf("%s: never above 0: %s", p.Title, filled(q.Expr))
			}
		}
	}
	if len(quiet) != len(atRest) {
		t.Errorf("of %q only %q are in the dashboard", atRest, slices.Sorted(maps.Keys(quiet)))
	}
	for _, v := range d.Templating.List {
		m := regexp.MustCompile(`^label_values\((.*), (\w+)\)$`).FindStringSubmatch(v.Query)
		if m == nil {
			if v.Type != "datasource" {
				t.Errorf("variable %s: %s", v.Name, v.Query)
			}
			continue
		}
		list, err := prom.query(t.Context(), fmt.Sprintf("count by (%s) (%s)", m[2], filled(m[1])))
		if err != nil || len(list) == 0 || list[0].Metric[m[2]] == "" {
			t.Errorf("variable %s has no values: %v %v", v.Name, list, err)
		}
	}
}

func recorded(t *testing.T, prom *database) {
	rules, err := get(t.Context(), prom.url+"/api/v1/rules?type=record")
	if err != nil {
		t.Fatal(err)
	}
	names := regexp.MustCompile(`"name":"(pinwheel:[^"]+)"`).FindAllStringSubmatch(rules, -1)
	if len(names) < 6 {
		t.Errorf("%d recording rules in %s", len(names), rules)
	}
	for _, name := range names {
		list, err := prom.query(t.Context(), name[1])
		if err != nil || len(list) == 0 || len(list[0].finite()) == 0 {
			t.Errorf("%s has no value: %v %v", name[1], list, err)
		}
	}
}

// sameSeries compares what two gateways show of the plugin and of the cluster once Prometheus has put labels right.
func sameSeries(t *testing.T, prom *database, a, b string) {
	of := func(instance string) (names []string) {
		list, err := prom.query(t.Context(), `{__name__=~"pinwheel_.+|envoy_cluster_upstream_rq_(xx|retry|time_bucket)|envoy_wasm_pinwheel.+",instance="`+instance+`"}`)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range list {
			name := s.Metric["__name__"]
			for _, label := range []string{"pool", "policy", "replica", "reason", "kind", "envoy_cluster_name", "envoy_response_code_class"} {
				name += fmt.Sprintf(" %s=%q", label, s.Metric[label])
			}
			if !strings.Contains(name, `_class="5"`) { // the one that served the dying engine
				names = append(names, name)
			}
		}
		slices.Sort(names)
		return names
	}
	first, second := of(a), of(b)
	if !slices.Equal(first, second) || len(first) < 40 {
		t.Errorf("with stats_tags:\n%s\n\nwith Istio's:\n%s", strings.Join(first, "\n"), strings.Join(second, "\n"))
	}
}

// agree waits until Prometheus shows of each replica what the plugin's status says.
func agree(t *testing.T, prom *database, envoy *envoytest.Envoy, url string) {
	replica := regexp.MustCompile(`\{"address":"([^"]+)".*?"open_sessions":(\d+),"inflight":(\d+)`)
	open := regexp.MustCompile(`"totals":\{"open_sessions":([1-9])`)
	seen := false // that it had sessions
	eventually(t, "Prometheus and the status to agree", func() error {
		status, err := get(t.Context(), url+"/pinwheel/status")
		if err != nil {
			return err
		}
		for _, metric := range []string{"sessions", "inflight"} {
			list, err := prom.query(t.Context(), fmt.Sprintf(`pinwheel_%s{instance="%s"}`, metric, envoy.Admin.Addr))
			if err != nil {
				return err
			}
			got := map[string]string{}
			for _, s := range list {
				got[s.Metric["replica"]], _ = s.Value[1].(string)
			}
			want := map[string]string{}
			for _, m := range replica.FindAllStringSubmatch(status, -1) {
				want[m[1]] = m[map[string]int{"sessions": 2, "inflight": 3}[metric]]
			}
			if !maps.Equal(got, want) || len(want) != 3 {
				return fmt.Errorf("%s: %v, status %v", metric, got, want)
			}
		}
		if !seen && !open.MatchString(status) {
			t.Errorf("no session was open any more: %s", status)
		}
		seen = true
		return nil
	})
}
