package main

import (
	"os"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	"sigs.k8s.io/yaml"
)

// The committed file is what the program writes, and the operator's types know every field of it.
func TestManifest(t *testing.T) {
	want, err := manifest("..")
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile("../kubernetes.yaml")
	if err != nil || string(text) != want {
		t.Fatalf("kubernetes.yaml differs from what the program writes: go run ./kubernetes > kubernetes.yaml (%v)", err)
	}
	var istio, gateway monitoring.PodMonitor
	var rules monitoring.PrometheusRule
	parts := strings.Split(want, "\n---\n")
	if len(parts) != 3 && len(parts) != 4 {
		t.Fatalf("%d objects", len(parts))
	}
	parts = parts[len(parts)-3:]
	for i, to := range []any{&istio, &gateway, &rules} {
		if err := yaml.UnmarshalStrict([]byte(parts[i]), to); err != nil {
			t.Error(err)
		}
	}
	for _, m := range []monitoring.PodMonitor{istio, gateway} {
		if len(m.Spec.PodMetricsEndpoints) != 1 || len(m.Spec.PodMetricsEndpoints[0].MetricRelabelConfigs) < 10 {
			t.Errorf("%s: %+v", m.Name, m.Spec.PodMetricsEndpoints)
		}
	}
	if len(rules.Spec.Groups) != 2 || len(rules.Spec.Groups[1].Rules) < 10 {
		t.Errorf("%+v", rules.Spec.Groups)
	}
}
