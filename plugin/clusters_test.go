package plugin

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/plugin/json"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// recorded reads what an Envoy of that version answered to
// /clusters?format=json with hosts in all the states that it knows.
func recorded(t testing.TB, version string) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/clusters/envoy-" + version + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// membersIn reads the members of a cluster out of an answer.
func membersIn(answer []byte, cluster, admin string) ([]policy.Member, error) {
	clusters, err := readClusters(answer)
	if err != nil {
		return nil, err
	}
	return clusterMembers(clusters, cluster, admin)
}

func TestClusterMembersOfRealAnswers(t *testing.T) {
	for _, version := range []string{"1.36.4", "1.40.0"} {
		answer := recorded(t, version)
		for cluster, want := range map[string][]policy.Member{
			"vllm": {
				{Address: "127.0.0.1:12411", Weight: 3, State: policy.Active},
				{Address: "127.0.0.1:12412", Weight: 1, State: policy.Draining},
				{Address: "127.0.0.1:12413", Weight: 1, State: policy.Unhealthy},
				{Address: "127.0.0.1:12414", Weight: 1, State: policy.Draining}, // DEGRADED
				{Address: "127.0.0.1:12415", Weight: 1, State: policy.Unhealthy},
				{Address: "[fd00::2]:8000", Weight: 1, State: policy.Active},
				// the last one is a socket file
			},
			"checked": {
				{Address: "127.0.0.1:12411", Weight: 1, State: policy.Active},
				{Address: "127.0.0.1:12419", Weight: 1, State: policy.Unhealthy},
			},
			"ejected": {{Address: "127.0.0.1:12419", Weight: 1, State: policy.Unhealthy}},
			"outbound|8000||vllm.default.svc.cluster.local": {{Address: "10.0.0.7:8000", Weight: 1, State: policy.Active}},
			"none": nil,
		} {
			got, err := membersIn(answer, cluster, "")
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("Envoy %s, cluster %s: %+v, %v; want %+v", version, cluster, got, err, want)
			}
		}
		for _, cluster := range []string{"vll", "vllm.", "default"} {
			if got, err := membersIn(answer, cluster, ""); !errors.Is(err, errNoCluster) {
				t.Errorf("cluster %s: %v, %v", cluster, got, err)
			}
		}
		if _, err := membersIn(answer, "", "none"); !errors.Is(err, errManyClusters) {
			t.Errorf("no name: %v", err)
		}
		// No part of it passes for the whole.
		for n := 0; n < len(answer)-2; n += 97 {
			if got, err := membersIn(answer[:n], "vllm", ""); !errors.Is(err, errNoAnswer) {
				t.Fatalf("the first %d bytes: %v, %v", n, got, err)
			}
		}
	}
}

func TestClusterMembers(t *testing.T) {
	host := func(address string, port int, rest string) string {
		return fmt.Sprintf(`{"address":{"socket_address":{"address":%q,"port_value":%d}}%s}`, address, port, rest)
	}
	for _, tt := range []struct {
		name, hosts, want string
	}{
		{"no health, no weight", host("10.0.0.1", 1, ""), "10.0.0.1:1/1/active"},
		{"in another spelling", host("FD00:0::0:2", 80, ""), "[fd00::2]:80/1/active"},
		{"an address within IPv6", host("::ffff:10.0.0.1", 80, ""), "[::ffff:10.0.0.1]:80/1/active"},
		{"a zone", host("fe80::1%eth0", 80, ""), ""},
		{"a name", host("replica", 80, ""), ""},
		{"a port out of range", host("10.0.0.1", 65536, "") + "," + host("10.0.0.1", 0, ""), ""},
		{"no address", `{},{"address":{"pipe":{"path":"/x"}}},{"address":{"envoy_internal_address":{}}}`, ""},
		{"one address twice", host("10.0.0.1", 1, `,"weight":2`) + "," + host("10.0.0.1", 1, `,"weight":9`), "10.0.0.1:1/2/active"},
		{"weights at the ends", host("10.0.0.1", 1, `,"weight":0`) + "," + host("10.0.0.2", 1, `,"weight":70000`), "10.0.0.1:1/1/active 10.0.0.2:1/65535/active"},
		{"a host on its way out", host("10.0.0.1", 1, `,"health_status":{"pending_dynamic_removal":true,"eds_health_status":"HEALTHY"}`), "10.0.0.1:1/1/draining"},
		{"not checked yet", host("10.0.0.1", 1, `,"health_status":{"pending_active_hc":true}`), "10.0.0.1:1/1/unhealthy"},
		{"the worse of two", host("10.0.0.1", 1, `,"health_status":{"failed_outlier_check":true,"eds_health_status":"DRAINING"}`), "10.0.0.1:1/1/unhealthy"},
		{"a flag that is off", host("10.0.0.1", 1, `,"health_status":{"failed_outlier_check":false,"eds_health_status":"UNKNOWN"}`), "10.0.0.1:1/1/active"},
		{"a flag of later times", host("10.0.0.1", 1, `,"health_status":{"failed_mood_check":true,"eds_health_status":"TIRED"}`), "10.0.0.1:1/1/active"},
	} {
		answer := `{"cluster_statuses":[{"name":"envoy_admin","host_statuses":[` + host("127.0.0.1", 9901, "") + `]},{"name":"c","host_statuses":[` + tt.hosts + `]}]}`
		for _, cluster := range []string{"c", ""} {
			members, err := membersIn([]byte(answer), cluster, "envoy_admin")
			if got := listed(members); err != nil || got != tt.want {
				t.Errorf("%s: %s, %v; want %s", tt.name, got, err, tt.want)
			}
		}
	}
}

func listed(members []policy.Member) string {
	var out []string
	for _, m := range members {
		out = append(out, fmt.Sprintf("%s/%d/%s", m.Address, m.Weight, m.State))
	}
	return strings.Join(out, " ")
}

func TestClusterMembersRefuses(t *testing.T) {
	crowd := crowdedAnswer(maxReplicas + 1)
	for answer, want := range map[string]error{
		"":                        errNoAnswer,
		"no JSON":                 errNoAnswer,
		"{}":                      errNothingListed,
		"[]":                      errNothingListed,
		`{"cluster_statuses":{}}`: errNothingListed,
		`{"cluster_statuses":[]}`: errNoCluster,
		`{"cluster_statuses":[1,null,{"name":5},{"host_statuses":[]}]}`: errNoCluster,
		string(crowd): errTooManyHosts,
	} {
		if got, err := membersIn([]byte(answer), "crowd", ""); !errors.Is(err, want) || got != nil {
			t.Errorf("%.60s: %v, %v; want %v", answer, got, err, want)
		}
	}
	if got, err := membersIn(crowdedAnswer(maxReplicas), "crowd", ""); err != nil || len(got) != maxReplicas {
		t.Errorf("%d members, %v", len(got), err)
	}
}

// crowdedAnswer is an answer with a cluster "crowd" of n hosts, each as long as
// Envoy makes it.
func crowdedAnswer(n int) []byte {
	b := []byte(`{"cluster_statuses":[{"name":"crowd","host_statuses":[`)
	for i := range n {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Appendf(b, `{"address":{"socket_address":{"address":"10.0.%d.%d","port_value":8000}},"stats":[%s],`+
			`"health_status":{"eds_health_status":"HEALTHY"},"weight":1,"locality":{}}`, i/256, i%256,
			strings.TrimSuffix(strings.Repeat("\n     {\n      \"type\": \"GAUGE\",\n      \"name\": \"rq_pending_active\"\n     },", 11), ","))
	}
	return append(b, "]}]}"...)
}

// Whatever the answer, members are valid: addresses of one spelling, each once,
// weights and states in their ranges.
func FuzzClusterMembers(f *testing.F) {
	f.Add([]byte(`{"cluster_statuses":[{"name":"c","host_statuses":[{"address":{"socket_address":{"address":"10.0.0.1","port_value":80}},`+
		`"health_status":{"failed_outlier_check":true,"eds_health_status":"DRAINING"},"weight":3},{"address":{"pipe":{}}}]},{"name":"d"}]}`), "c")
	f.Add([]byte(`{"cluster_statuses":[{"name":"\u0063","host_statuses":[{"address":{"socket_address":{"address":"::1","port_value":1e2}}}]}]}`), "c")
	f.Fuzz(func(t *testing.T, fuzzed []byte, cluster string) {
		answer := bytes.Clone(fuzzed)
		members, err := membersIn(answer, cluster, "envoy_admin")
		if err != nil && members != nil {
			t.Fatal("members beside an error")
		}
		before := listed(members)
		seen := map[string]bool{}
		for _, m := range members {
			d := &decoder{}
			address := ""
			d.address(&address, "", quoted(m.Address))
			if d.err != nil || address != m.Address || seen[address] {
				t.Errorf("address %q: %v, spelled %q by configuration, seen %v", m.Address, d.err, address, seen[address])
			}
			seen[address] = true
			if m.Weight < 1 || m.Weight > 65535 || m.State > policy.Unhealthy {
				t.Errorf("member %+v", m)
			}
		}
		clear(answer)
		if got := listed(members); got != before {
			t.Error("members refer to the answer")
		}
	})
}

func BenchmarkClusterMembers(b *testing.B) {
	answer := crowdedAnswer(512)
	b.SetBytes(int64(len(answer)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := membersIn(answer, "crowd", ""); err != nil {
			b.Fatal(err)
		}
	}
}

func quoted(s string) json.Result { return json.Result{Type: json.String, Str: s} }
