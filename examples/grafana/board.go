package main

import (
	"github.com/grafana/grafana-foundation-sdk/go/cog"
	"github.com/grafana/grafana-foundation-sdk/go/common"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
	"github.com/grafana/grafana-foundation-sdk/go/units"
)

// page is where the alerts, and what to do about each, are explained.
const page = "https://github.com/pinwheel-proxy/pinwheel/blob/main/docs/operations.md"

// Requests that had no pin to follow, and turns of sessions that had one.
const (
	unpinned = `reason=~"keyless|oversized|table_full|no_replica|error"`
	returned = `reason=~"pinned|expired|failover_unhealthy|failover_removed"`
)

// board is the dashboard. Rows go from what is asked first to what explains it.
func board() *dashboard.DashboardBuilder {
	b := dashboard.NewDashboardBuilder("Pinwheel").Uid("pinwheel").Tags([]string{"pinwheel", "envoy", "llm"}).
		Description("LLM sessions pinned to replicas by the Pinwheel plugin, with Envoy's own figures and the engines' beside them.").
		Readonly().Tooltip(dashboard.DashboardCursorSyncCrosshair).Time("now-1h", "now").Refresh("30s").Timezone(common.TimeZoneBrowser).
		Link(dashboard.NewDashboardLinkBuilder("Operations").Type(dashboard.DashboardLinkTypeLink).Url(page).TargetBlank(true)).
		WithVariable(dashboard.NewDatasourceVariableBuilder("datasource").Label("Data source").Type("prometheus")).
		WithVariable(variable("job", "Job", "label_values(pinwheel_sessions, job)")).
		WithVariable(variable("gateway", "Gateway", `label_values(pinwheel_sessions{job=~"$job"}, instance)`)).
		WithVariable(variable("pool", "Pool", `label_values(pinwheel_sessions{job=~"$job"}, pool)`)).
		WithVariable(variable("cluster", "Envoy cluster", `label_values(envoy_cluster_upstream_rq_total{job=~"$job"}, envoy_cluster_name)`)).
		WithVariable(variable("engines", "Engines' job", `label_values(vllm:prefix_cache_queries_total, job)`))
	for _, r := range []struct {
		title  string
		panels []cog.Builder[dashboard.Panel]
	}{
		{"Now", now()}, {"Sessions", sessions()}, {"Decisions", decisions()}, {"Trouble", trouble()},
		{"Envoy, by cluster", envoy()}, {"Engines (vLLM)", engines()},
	} {
		b = b.WithRow(dashboard.NewRowBuilder(r.title))
		for _, p := range r.panels {
			b = b.WithPanel(p)
		}
	}
	return b
}

func now() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		number("Open sessions", "Sessions that are pinned to a replica, over all gateways.", units.Short, 0,
			query{`sum(pinwheel_sessions{%P})`, ""}, levels()),
		number("Requests in flight", "Requests that replicas are answering, as the plugin counts them.", units.Short, 0,
			query{`sum(pinwheel_inflight{%P})`, ""}, levels()),
		number("Turns that kept their replica", "Of the turns of sessions that had a replica, those that went to it. Each of the others begins with a cold cache.",
			units.PercentUnit, 1, query{`sum(rate(pinwheel_decisions_total{%P,reason="pinned"}[%I])) / sum(rate(pinwheel_decisions_total{%P,` + returned + `}[%I]))`, ""},
			dashboard.NewThresholdsConfigBuilder().Mode(dashboard.ThresholdsModeAbsolute).Steps([]dashboard.Threshold{
				{Color: "red"}, {Value: cog.ToPtr(0.9), Color: "orange"}, {Value: cog.ToPtr(0.98), Color: "green"}})),
		number("Fullest replica against the mean", "Open sessions of the fullest replica over the mean of those that hold any; 1 is even. The worst pool.",
			units.Short, 2, query{`max(max by (pool) (sum by (pool, replica) (pinwheel_sessions{%P}) > 0) / avg by (pool) (sum by (pool, replica) (pinwheel_sessions{%P}) > 0))`, ""},
			levels(level{1.25, "orange"}, level{1.5, "red"})),
		number("Replicas cooling down", "Left alone after failures in a row, as any of the gateways sees it.", units.Short, 0,
			query{`sum(max by (pool, replica) (pinwheel_cooling{%P}))`, ""}, levels(level{1, "red"})),
		number("Errors in 10 minutes", "pinwheel_errors_total of all kinds.", units.Short, 0,
			query{`sum(increase(pinwheel_errors_total{%G}[10m]))`, ""}, levels(level{1, "red"})),
	}
}

func sessions() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		graph("Open sessions per replica", "What placement evens out. A drained replica falls to 0; so does one that left the pool.", units.Short, 12,
			query{`sum by (pool, replica) (pinwheel_sessions{%P})`, "{{pool}} {{replica}}"}),
		graph("Requests in flight per replica", "Sessions are placed evenly, their turns come as clients please.", units.Short, 12,
			query{`sum by (pool, replica) (pinwheel_inflight{%P})`, "{{pool}} {{replica}}"}),
		graph("Sessions that began and ended", "Placed, of which some for the second time; released by clients; ended by idle_timeout.", units.OpsPerSecond, 12,
			query{`sum(rate(pinwheel_placements_total{%P}[%I]))`, "placed"},
			query{`sum(rate(pinwheel_released_total{%P}[%I]))`, "released"},
			query{`sum(rate(pinwheel_expired_total{%P}[%I]))`, "expired"}),
		graph("Fullest replica against the mean", "Per pool; 1 is even. Small pools with few sessions are never quite even.", units.Short, 12,
			query{`max by (pool) (sum by (pool, replica) (pinwheel_sessions{%P}) > 0) / avg by (pool) (sum by (pool, replica) (pinwheel_sessions{%P}) > 0)`, "{{pool}}"}),
	}
}

func decisions() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		stacked(graph("Decisions by reason", "Requests a second. The reasons are explained in docs/why-this-replica.md.", units.RequestsPerSecond, 12,
			query{`sum by (reason) (rate(pinwheel_decisions_total{%P}[%I])) > 0`, "{{reason}}"})),
		graph("Turns that kept their replica", "Per pool, of the turns of sessions that had a replica.", units.PercentUnit, 6,
			query{`sum by (pool) (rate(pinwheel_decisions_total{%P,reason="pinned"}[%I])) / sum by (pool) (rate(pinwheel_decisions_total{%P,` + returned + `}[%I]))`, "{{pool}}"}).Max(1),
		stacked(graph("Requests without a pin", "Share of all requests: no session id, too long a one, no room, no replica, no shared data.", units.PercentUnit, 6,
			query{`sum by (reason) (rate(pinwheel_decisions_total{%P,` + unpinned + `}[%I])) / on () group_left () sum(rate(pinwheel_decisions_total{%P}[%I]))`, "{{reason}}"})),
	}
}

func trouble() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		graph("Sessions that left their replica", "failover_*: placed anew at their next turn. followed: the pin went to where a retry had been served.", units.OpsPerSecond, 8,
			query{`sum by (reason) (rate(pinwheel_failovers_total{%P}[%I]))`, "{{reason}}"}),
		steps(graph("Replicas cooling down", "1 while a gateway leaves the replica alone after failures.", units.Short, 8,
			query{`max by (pool, replica) (pinwheel_cooling{%P})`, "{{pool}} {{replica}}"})).Max(1),
		graph("Fallbacks, panics, restarts", "Fallbacks: a failure or a retry involved another host than the named one. Panics: no replica was eligible, and one was named all the same. Restarts: Envoy replaced a plugin that had trapped.", units.OpsPerSecond, 8,
			query{`sum(rate(pinwheel_fallbacks_total{%P}[%I]))`, "fallbacks"},
			query{`sum(rate(pinwheel_panics_total{%P}[%I]))`, "panics"},
			query{`sum(rate(envoy_wasm_pinwheel_vm_reload{%G}[%I]))`, "restarts of the plugin"}),
		graph("Errors by kind", "Within 10 minutes. Any of them is explained in docs/operations.md.", units.Short, 12,
			query{`sum by (kind) (increase(pinwheel_errors_total{%G}[10m]))`, "{{kind}}"}),
		graph("Shared data", "Retries: workers that wrote the same record at once, harmless. Repaired: counts put right after a worker died.", units.OpsPerSecond, 12,
			query{`sum(rate(pinwheel_cas_retries_total{%P}[%I]))`, "compare-and-swap retries"},
			query{`sum(rate(pinwheel_drift_repaired_total{%P}[%I]))`, "counts repaired"}),
	}
}

func envoy() []cog.Builder[dashboard.Panel] {
	quantile := func(q string) query {
		return query{`histogram_quantile(` + q + `, sum by (le, envoy_cluster_name) (rate(envoy_cluster_upstream_rq_time_bucket{%C}[%I])))`, "{{envoy_cluster_name}} p" + q[2:]}
	}
	return []cog.Builder[dashboard.Panel]{
		graph("Upstream latency", "Time of an upstream request in Envoy, whole answers included: streams count as long as they last.", units.Milliseconds, 8,
			quantile("0.50"), quantile("0.95"), quantile("0.99")),
		graph("Upstream answers by class", "What the cluster's hosts answered, each attempt on its own.", units.RequestsPerSecond, 8,
			query{`sum by (envoy_cluster_name, envoy_response_code_class) (rate(envoy_cluster_upstream_rq_xx{%C}[%I]))`, "{{envoy_cluster_name}} {{envoy_response_code_class}}xx"}),
		graph("Retries, overflow, failed connections", "Retries hide a dead replica from clients; an overflow is a 503 by a circuit breaker.", units.OpsPerSecond, 8,
			query{`sum by (envoy_cluster_name) (rate(envoy_cluster_upstream_rq_retry{%C}[%I]))`, "{{envoy_cluster_name}} retries"},
			query{`sum by (envoy_cluster_name) (rate(envoy_cluster_upstream_rq_pending_overflow{%C}[%I]))`, "{{envoy_cluster_name}} overflow"},
			query{`sum by (envoy_cluster_name) (rate(envoy_cluster_upstream_cx_connect_fail{%C}[%I]))`, "{{envoy_cluster_name}} connections failed"}),
	}
}

func engines() []cog.Builder[dashboard.Panel] {
	return []cog.Builder[dashboard.Panel]{
		graph("Prefix cache hit rate", "Share of prompt tokens that an engine did not compute again: what affinity is for.", units.PercentUnit, 8,
			query{`sum by (instance) (rate(vllm:prefix_cache_hits_total{%E}[%I])) / sum by (instance) (rate(vllm:prefix_cache_queries_total{%E}[%I]))`, "{{instance}}"}).Max(1),
		graph("Requests running and waiting", "As each engine says. Waiting on one and not on the others: its sessions are busier.", units.Short, 8,
			query{`sum by (instance) (vllm:num_requests_running{%E})`, "{{instance}} running"},
			query{`sum by (instance) (vllm:num_requests_waiting{%E})`, "{{instance}} waiting"}),
		graph("KV cache in use", "Near 1 an engine evicts prefixes of its own sessions: fewer sessions per replica, or more replicas.", units.PercentUnit, 8,
			query{`max by (instance) (vllm:kv_cache_usage_perc{%E})`, "{{instance}}"}).Max(1),
	}
}
