//go:build etcd

package main

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

func TestMain(m *testing.M) {
	envoytest.ActAsCurl()
	os.Exit(m.Run())
}

var said = regexp.MustCompile(`(?m)^(\w+) at (\d+): (\w+) on (\S+)$`)

// The README's commands run from its first line to its last, and print what the README says.
func TestReadmeCommands(t *testing.T) {
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	path, err := envoytest.PathWithCurl(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	script := strings.Join(envoytest.ShellBlocks(string(page)), "\n")
	script = strings.Replace(script, "make wasm ", "true ", 1) // there already, and others run it
	flags := ""
	for _, f := range []struct {
		name  string
		ports []string
	}{{"gateways", []string{"10000", "10001"}}, {"admin", []string{"9901", "9902"}}, {"etcd", []string{"2379"}}, {"stand-ins", []string{"8001", "8002", "8003"}}} {
		var free []string
		for _, p := range f.ports {
			n, err := envoytest.FreePort()
			if err != nil {
				t.Fatal(err)
			}
			free = append(free, fmt.Sprint(n))
			script = strings.ReplaceAll(script, p, fmt.Sprint(n))
		}
		flags += " -" + f.name + " " + strings.Join(free, ",")
	}
	const start = "dist/many-gateways >"
	if !strings.Contains(script, start) {
		t.Fatalf("no command %q", start)
	}
	out, err := envoytest.RunScript(t.Context(), root, strings.Replace(script, start, "dist/many-gateways"+flags+" >", 1), "PATH="+path)
	if err != nil {
		log, _ := os.ReadFile(root + "/dist/many-gateways.log")
		t.Fatalf("the commands failed: %v\n%s\nThe example said:\n%s", err, out, log)
	}
	turns := said.FindAllStringSubmatch(out, -1)
	shown := said.FindAllStringSubmatch(envoytest.Blocks(string(page), "text")[0], -1)
	if len(turns) != len(shown)+12 {
		t.Fatalf("%d turns, want the %d that are shown and 12 more:\n%s", len(turns), len(shown), out)
	}
	homes := map[string]string{}
	for i, turn := range turns {
		session, reason, home := turn[1], turn[3], turn[4]
		// Where etcd does not answer in time, on a busy machine, a session is placed without it: at the same replica.
		busy := i < len(shown) && reason == "placed" && shown[i][2] == "10001"
		if i < len(shown) && (session != shown[i][1] || reason != shown[i][3] && !busy) {
			t.Errorf("turn %d: %s, shown is %s", i+1, turn[0], shown[i][0])
		}
		if homes[session] == "" {
			homes[session] = home
		}
		if homes[session] != home || !strings.HasPrefix(home, "127.0.0.1:") {
			t.Errorf("%s, before it was on %s", turn[0], homes[session])
		}
	}
	for _, want := range []string{`{"status":"ok","session_id":"planner"}`, `"state":"degraded"`, `"state":"ok"`} {
		if !strings.Contains(out, want) {
			t.Errorf("no %s in\n%s", want, out)
		}
	}
}
