// Kubernetes writes kubernetes.yaml, the same scraping and rules for the Prometheus operator, from prometheus.yml and
// rules.yml:
//
//	go run ./kubernetes > kubernetes.yaml
//
// The objects are the operator's own types: what it does not know is an error here.
package main

import (
	"fmt"
	"os"
	"strings"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"
)

func main() {
	text, err := manifest(".")
	if err != nil {
		fmt.Fprintln(os.Stderr, "kubernetes:", err)
		os.Exit(1)
	}
	os.Stdout.WriteString(text)
}

const head = `# For the Prometheus operator: scrapes Istio's and Envoy Gateway's gateways, with Pinwheel's rules. Written by
# "go run ./kubernetes" from prometheus.yml and rules.yml.
#
# To make it yours, edit: the selector of Istio's gateway, that of examples/istio here; and labels, if your Prometheus selects monitors and rules by
# any, as that of kube-prometheus-stack does by "release".
`

// manifest is the file as it is committed, from the two files in a folder.
func manifest(folder string) (string, error) {
	relabelings, err := relabelings(folder + "/prometheus.yml")
	if err != nil {
		return "", err
	}
	rules := monitoring.PrometheusRule{TypeMeta: kind("PrometheusRule"), ObjectMeta: named("pinwheel")}
	text, err := os.ReadFile(folder + "/rules.yml")
	if err != nil {
		return "", err
	}
	if err := yaml.UnmarshalStrict(text, &rules.Spec); err != nil {
		return "", fmt.Errorf("rules.yml: %w", err)
	}
	// Istio's Envoy shows its metrics on this port; Envoy Gateway's proxies have a port of that name.
	port, metrics := int32(15090), "metrics"
	istio := monitor("pinwheel-istio", map[string]string{"gateway.networking.k8s.io/gateway-name": "llm"}, monitoring.PodMetricsEndpoint{PortNumber: &port}, relabelings)
	gateway := monitor("pinwheel-envoy-gateway", map[string]string{
		"app.kubernetes.io/managed-by": "envoy-gateway", "app.kubernetes.io/component": "proxy",
	}, monitoring.PodMetricsEndpoint{Port: &metrics}, relabelings)
	out := head
	for _, object := range []any{istio, gateway, rules} {
		text, err := yaml.Marshal(object)
		if err != nil {
			return "", err
		}
		out += "---\n" + strings.TrimSuffix(string(text), "status: {}\n")
	}
	return out, nil
}

// monitor scrapes the pods with these labels, in all namespaces, as the job of that name.
func monitor(job string, pods map[string]string, at monitoring.PodMetricsEndpoint, relabelings []monitoring.RelabelConfig) monitoring.PodMonitor {
	at.Path, at.Interval, at.MetricRelabelConfigs = "/stats/prometheus", "15s", relabelings
	at.RelabelConfigs = []monitoring.RelabelConfig{{TargetLabel: "job", Replacement: &job}} // alerts look for jobs so named
	return monitoring.PodMonitor{TypeMeta: kind("PodMonitor"), ObjectMeta: named(job), Spec: monitoring.PodMonitorSpec{
		Selector: meta.LabelSelector{MatchLabels: pods}, NamespaceSelector: monitoring.NamespaceSelector{Any: true},
		PodMetricsEndpoints: []monitoring.PodMetricsEndpoint{at},
	}}
}

// relabelings reads those of the job pinwheel.
func relabelings(file string) ([]monitoring.RelabelConfig, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var config struct {
		Jobs []struct {
			Name    string `json:"job_name"`
			Metrics []struct {
				From        []monitoring.LabelName `json:"source_labels"`
				Regex       string                 `json:"regex"`
				To          string                 `json:"target_label"`
				Replacement *string                `json:"replacement"`
			} `json:"metric_relabel_configs"`
		} `json:"scrape_configs"`
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	var list []monitoring.RelabelConfig
	for _, job := range config.Jobs {
		for _, m := range job.Metrics {
			list = append(list, monitoring.RelabelConfig{SourceLabels: m.From, Regex: m.Regex, TargetLabel: m.To, Replacement: m.Replacement})
		}
	}
	return list, nil
}

func kind(name string) meta.TypeMeta {
	return meta.TypeMeta{APIVersion: "monitoring.coreos.com/v1", Kind: name}
}

func named(name string) meta.ObjectMeta { return meta.ObjectMeta{Name: name} }
