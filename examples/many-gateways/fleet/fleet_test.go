package fleet

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// The example's file takes other ports, replicas and members of etcd; without any the plugin is told of no agreement.
func TestBootstrap(t *testing.T) {
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	file, err := envoytest.LoadBootstrap(filepath.Join(root, Folder, "envoy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	o := Options{Replicas: []string{"127.0.0.1:7001", "127.0.0.1:7002", "127.0.0.1:7003", "127.0.0.1:7004"}}
	for _, etcd := range [][]string{nil, {"127.0.0.1:7100"}, {"127.0.0.1:7100", "127.0.0.2:7101", "127.0.0.3:7102"}} {
		o.Etcd = etcd
		text, err := o.bootstrap(file, Ports{7200, 7201})
		if err != nil {
			t.Fatalf("%v: %v", etcd, err)
		}
		agreed := false
		if _, err := text.Plugin(func(c map[string]any) { agreed = Agreement(c) != nil }); err != nil {
			t.Fatal(err)
		}
		if agreed != (len(etcd) > 0) {
			t.Errorf("etcd %v: is there an agreement? %v", etcd, agreed)
		}
		for _, port := range []string{"7001", "7004", "7200", "7201"} {
			if strings.Count(string(text), "port_value: "+port+"}") != 1 {
				t.Errorf("etcd %v: port %s is not there once:\n%s", etcd, port, text)
			}
		}
		for _, member := range etcd {
			host, port, _ := strings.Cut(member, ":")
			if !strings.Contains(string(text), "- endpoint: {address: {socket_address: {address: "+host+", port_value: "+port+"}}}\n") {
				t.Errorf("no member %s in\n%s", member, text)
			}
		}
	}
}

func TestSessions(t *testing.T) {
	all := Sessions{
		{"one", []Answer{{Status: 200, Home: "a"}, {Status: 200, Home: "a", Gateway: 1}}},
		{"two", []Answer{{Status: 200, Home: "a"}, {Status: 200, Home: "b", Gateway: 1}}},
		{"three", []Answer{{Status: 200, Home: "b"}, {Status: 503, Home: "b"}}},
		{"four", []Answer{{Err: errors.New("reset")}}},
	}
	if list := all.Disagreeing(); len(list) != 1 || !strings.HasPrefix(list[0], "two: 0 a") {
		t.Errorf("disagreeing: %q, want two", list)
	}
	if list := all.Failed(); len(list) != 2 || !strings.Contains(list[0], "status 503") || !strings.Contains(list[1], "reset") {
		t.Errorf("failed: %q, want a 503 of three and a reset of four", list)
	}
	if got := all.Spread([]string{"a", "b"}); !slices.Equal(got, []int{1, 2}) {
		t.Errorf("spread %v, want 1 and 2", got)
	}
	if all.Turns() != 7 {
		t.Errorf("%d turns, want 7", all.Turns())
	}
}

func TestCalls(t *testing.T) {
	const name = "wasmcustom.pinwheel_agreement_calls_total.pool.default.call."
	calls := Calls{name + "create.result.ok": 5, name + "create.result.timeout": 2, name + "poll.result.ok": 3, name + "poll.result.timeout": 0}
	for _, c := range []struct {
		call, result string
		want         uint64
	}{{"create", "ok", 5}, {"", "ok", 8}, {"create", "", 7}, {"", "timeout", 2}, {"auth", "ok", 0}} {
		if got := calls.Of(c.call, c.result); got != c.want {
			t.Errorf("calls %q with result %q: %d, want %d", c.call, c.result, got, c.want)
		}
	}
	if got := calls.String(); got != "create ok 5, create timeout 2, poll ok 3" {
		t.Errorf("as text: %q", got)
	}
}
