package main

import (
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
)

func TestWithReplicas(t *testing.T) {
	for config, want := range map[string]string{
		"":                           `{"replicas":["a:1","b:1"]}`,
		`{"policy":"random"}`:        `{"policy":"random","replicas":["a:1","b:1"]}`,
		`{"replicas":["c:1"]}`:       `{"replicas":["c:1"]}`,
		`{"replicas":[]}`:            `{"replicas":[]}`,
		`{"pools":[]}`:               `{"pools":[]}`,
		`{"discovery":{"x":1}}`:      `{"discovery":{"x":1}}`,
		"not JSON, another plugin's": "not JSON, another plugin's",
		`["a list"]`:                 `["a list"]`,
	} {
		if got := string(withReplicas([]byte(config), []string{"a:1", "b:1"}, false)); got != want {
			t.Errorf("%s: %s, want %s", config, got, want)
		}
	}
}

// What shows reasons asks for them, unless the configuration says otherwise.
func TestWithReplicasAndReasons(t *testing.T) {
	for config, want := range map[string]string{
		"":                        `{"debug_headers":true,"replicas":["a:1"]}`,
		`{"debug_headers":false}`: `{"debug_headers":false,"replicas":["a:1"]}`,
		`{"replicas":["c:1"]}`:    `{"replicas":["c:1"]}`,
		"another plugin's":        "another plugin's",
	} {
		if got := string(withReplicas([]byte(config), []string{"a:1"}, true)); got != want {
			t.Errorf("%s: %s, want %s", config, got, want)
		}
	}
}

func TestCheckReplicas(t *testing.T) {
	clusters := []gateway.Cluster{
		{Name: "one", Hosts: []string{"10.0.0.1:80", "10.0.0.2:80"}},
		{Name: "two", Hosts: []string{"[fd00::1]:80", "localhost:80"}},
	}
	const both = "cluster one (10.0.0.1:80, 10.0.0.2:80) or cluster two ([fd00::1]:80, localhost:80)"
	for config, want := range map[string]string{
		`{"replicas":["10.0.0.2:80","[fd00:0::1]:80"]}`:                      "",
		`{"replicas":[{"address":"10.0.0.1:80","weight":2}]}`:                "",
		`{"replicas":["10.0.0.1:80","10.0.0.1:81"]}`:                         "--config names 10.0.0.1:81, which is no host of " + both,
		`{"replicas":[{"address":"10.0.0.3:80"}]}`:                           "--config names 10.0.0.3:80, which is no host of " + both,
		`{"replicas":["127.0.0.1:80"]}`:                                      "--config names 127.0.0.1:80, which is no host of " + both,
		`{"pools":[{"cluster":"one","replicas":["10.0.0.1:80"]}]}`:           "",
		`{"pools":[{"name":"p","replicas":["10.0.0.1:80"]}]}`:                "",
		`{"pools":[{"cluster":"two","replicas":["10.0.0.1:80"]}]}`:           "--config names 10.0.0.1:80, which is no host of cluster two ([fd00::1]:80, localhost:80)",
		`{"pools":[{"name":"p"},{"name":"q","replicas":["10.0.0.1:9999"]}]}`: "--config names 10.0.0.1:9999, which is no host of " + both,

		"":                            "",
		"not JSON, another plugin's":  "",
		`["10.0.0.9:80"]`:             "",
		`{"replicas":3}`:              "",
		`{"replicas":["blue",7,{}]}`:  "", // no addresses: the plugin's to refuse
		`{"replicas":"10.0.0.9:80"}`:  "",
		`{"pools":{"a":1}}`:           "",
		`{"hosts":["10.0.0.9:80"]}`:   "",
		`{"replicas":[],"pools":[1]}`: "",
	} {
		got := ""
		if err := checkReplicas([]byte(config), clusters); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%s: %q, want %q", config, got, want)
		}
	}
}

// A configuration of other machines is refused before the plugin starts, in one line.
func TestReplicasThatAreNoHosts(t *testing.T) {
	for _, args := range [][]string{
		{"serve", "--sim-replicas", "6", "--listen", "127.0.0.1:0"},
		{"demo"},
	} {
		args = append(args, "--wasm", guest(t), "--config", `{"replicas": ["10.0.0.1:8000"]}`)
		code, _, stderr := command(args...)
		if code != 1 || strings.Count(stderr, "\n") != 1 ||
			!strings.HasPrefix(stderr, "hostsim: --config names 10.0.0.1:8000, which is no host of cluster sim (127.0.0.1:") {
			t.Errorf("%v: exit %d: %s", args, code, stderr)
		}
		if args[0] == "serve" && !strings.HasSuffix(stderr, ", ...)\n") {
			t.Errorf("%v lists every host: %s", args, stderr)
		}
	}
}
