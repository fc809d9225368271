//go:build vllm

package vllm

import (
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/vllm/engine"
)

// The flags, metrics and paths that README names are those of this vLLM, and it closes idle connections as the page says.
// Its YAML is part of every gateway of these tests, its command line starts the replicas.
func page(t *testing.T, r *replica) {
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	e, err := engine.Find(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	help, err := exec.CommandContext(t.Context(), e.Command(), "serve", "--help=all").CombinedOutput()
	if err != nil {
		t.Fatalf("vllm serve --help=all: %v\n%s", err, help)
	}
	holds(t, string(help), regexp.MustCompile(`--[a-z][a-z-]+`).FindAllString(string(text), -1), 5)
	metrics, err := r.ask(http.MethodGet, "/metrics")
	if err != nil {
		t.Fatal(err)
	}
	holds(t, metrics, regexp.MustCompile(`vllm:[a-z_]+`).FindAllString(string(text), -1), 5)
	paths, err := r.ask(http.MethodGet, "/openapi.json")
	if err != nil {
		t.Fatal(err)
	}
	holds(t, paths, regexp.MustCompile("`(/[a-z_]+)`").FindAllString(string(text), -1), 4)

	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if _, err := io.WriteString(conn, "GET /health HTTP/1.1\r\nHost: vllm\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	if err := conn.SetReadDeadline(begin.Add(10 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	said, err := io.ReadAll(conn)
	if idle := time.Since(begin); err != nil || !strings.HasPrefix(string(said), "HTTP/1.1 200") || idle < 5*time.Second {
		t.Errorf("after %v: %v, %q; want 200, and the end of the connection no sooner than after 5 s", idle, err, said)
	}
}

// holds wants each of the names in the text, and at least so many.
func holds(t *testing.T, text string, names []string, least int) {
	t.Helper()
	if len(names) < least {
		t.Errorf("README names %q, want at least %d", names, least)
	}
	for _, name := range names {
		if !strings.Contains(text, strings.Trim(name, "`")) {
			t.Errorf("README names %s, which this vLLM does not have", name)
		}
	}
}
