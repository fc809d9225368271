//go:build docker

package docker

import (
	"os/exec"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// Docker builds both images, and the page's walk runs.
func TestDocker(t *testing.T) {
	commands := envoytest.Blocks(read(t, "README.md"), "console")
	if len(commands) != 2 || !strings.Contains(commands[1], "docker build -f examples/docker/Dockerfile -t envoy-pinwheel .\n") {
		t.Fatalf("the page's commands are %q", commands)
	}
	run(t, root, "docker", "build", "-f", "examples/docker/Dockerfile", "-t", "envoy-pinwheel", ".")
	defer func() {
		down := exec.Command("docker", "compose", "-f", "examples/docker/compose.yaml", "down")
		down.Dir = root
		_ = down.Run()
	}()
	out := string(run(t, root, "sh", "-eu", "-c", commands[0]))
	if !strings.Contains(out, "x-pinwheel-replica: ") || !strings.Contains(out, `"session_id":"s1"`) {
		t.Errorf("printed\n%s", out)
	}
}
