package docker

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// project is what the Compose file means, in part.
type project struct {
	Services map[string]struct {
		Build struct{ Context, Dockerfile, Target string }
		Ports []struct {
			HostIP    string `json:"host_ip"`
			Target    int
			Published string
		}
		Volumes []struct {
			Source, Target string
			ReadOnly       bool `json:"read_only"`
		}
		Healthcheck struct{ Test []string }
		Deploy      struct{ Replicas int }
	}
}

func compose(t *testing.T) (p project) {
	t.Helper()
	out := run(t, filepath.Join(root, "build", "compose"), "go", "run", ".", "../../examples/docker/compose.yaml")
	if err := json.Unmarshal(out, &p); err != nil {
		t.Fatalf("%v in %s", err, out)
	}
	return p
}

// What the Compose file names is there: files, and stages of the Dockerfile.
func TestCompose(t *testing.T) {
	p := compose(t)
	stages := strings.Join(instructions(t, "FROM"), "\n") + "\n"
	for name, service := range p.Services {
		if _, err := os.Stat(filepath.Join(service.Build.Context, service.Build.Dockerfile)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if !strings.Contains(stages, " AS "+service.Build.Target+"\n") {
			t.Errorf("%s: the Dockerfile has no stage %q", name, service.Build.Target)
		}
		for _, v := range service.Volumes {
			if _, err := os.Stat(v.Source); err != nil || !v.ReadOnly {
				t.Errorf("%s: volume %+v: %v", name, v, err)
			}
		}
		for _, port := range service.Ports {
			if port.HostIP != "127.0.0.1" || port.Target != 10000 || port.Published != "10000" {
				t.Errorf("%s: port %+v", name, port)
			}
		}
	}
	if len(p.Services) != 2 || p.Services["replicas"].Deploy.Replicas != 3 || len(p.Services["gateway"].Volumes) != 1 {
		t.Errorf("services %+v", p.Services)
	}
}

// The configuration is examples/envoy/discovery.yaml but for the door, and where the hosts come from.
func TestConfiguration(t *testing.T) {
	lines := func(name string) map[string]bool {
		set := map[string]bool{}
		for line := range strings.Lines(read(t, name)) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
				set[line] = true
			}
		}
		return set
	}
	ours, theirs := lines("envoy.yaml"), lines(filepath.Join(root, "examples", "envoy", "discovery.yaml"))
	var differ []string
	for line := range ours {
		if !theirs[line] {
			differ = append(differ, "+ "+line)
		}
	}
	for line := range theirs {
		if !ours[line] {
			differ = append(differ, "- "+line)
		}
	}
	text := strings.Join(differ, "\n")
	for _, want := range []string{"+ address: {socket_address: {address: 0.0.0.0,", "- address: {socket_address: {address: 127.0.0.1,",
		"+ type: STRICT_DNS", "+ load_assignment: {cluster_name: vllm,", "- type: EDS", "- eds_cluster_config:"} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in the difference", want)
		}
	}
	if len(differ) != 6 {
		t.Errorf("%d lines differ, want six:\n%s", len(differ), text)
	}
}
