//go:build coraza

package coraza

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// TestMain builds the module by the README's first commands: all tests run what they make.
func TestMain(m *testing.M) {
	envoytest.ActAsCurl()
	page, err := os.ReadFile("README.md")
	if err == nil {
		blocks = envoytest.ShellBlocks(string(page))
	}
	if len(blocks) != 2 {
		fmt.Fprintf(os.Stderr, "%d blocks of commands in README.md, want 2 (%v)\n", len(blocks), err)
		os.Exit(1)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-euc", blocks[0]) // RunScript's two minutes are short for a first build
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if inspected = string(out); err != nil {
		fmt.Fprintf(os.Stderr, "the README's build: %v\n%s", err, out)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

var (
	blocks    []string
	inspected string // what the first one prints
)

var readmeMissing = regexp.MustCompile(`missing import: (\S+)`)

func TestReadmeInspects(t *testing.T) {
	m := readmeMissing.FindStringSubmatch(read(t, "README.md"))
	words := strings.Join(strings.Fields(inspected), " ") // without the table's columns
	if m == nil || !strings.Contains(words, "envoy-1.40 loads envoy-1.36 refuses it because of "+m[1]+" ") {
		t.Errorf("README names %q, inspect says\n%s", m, inspected)
	}
}

var startEnvoy = regexp.MustCompile(`(?m)^envoy=.*\n"\$envoy" -c examples/coraza/envoy.yaml .*&$`)

// readmeRequests sends the README's requests to an Envoy that runs already.
func readmeRequests(t *testing.T, door, admin string) {
	script := startEnvoy.ReplaceAllString(blocks[1], "sleep 100 &")
	if script == blocks[1] {
		t.Fatal("README.md does not start Envoy")
	}
	script = strings.NewReplacer("127.0.0.1:10000", door, "127.0.0.1:9901", admin).Replace(script)
	path, err := envoytest.PathWithCurl(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	out, err := envoytest.RunScript(t.Context(), root, script, "PATH="+path)
	if err != nil {
		t.Fatalf("the README's requests: %v\n%s", err, out)
	}
	var status []string
	for _, m := range regexp.MustCompile(`(?m)^HTTP/1.1 (\d+)`).FindAllStringSubmatch(out, -1) {
		status = append(status, m[1])
	}
	if !slices.Equal(status, []string{"200", "403", "403"}) {
		t.Errorf("the README's requests are answered %v:\n%s", status, out)
	}
}
