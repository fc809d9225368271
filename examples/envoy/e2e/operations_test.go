package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// The commands of docs/operations.md run as printed, but for ports and paths, on a gateway with its listener in a file.
func TestOperationsPage(t *testing.T) {
	t.Parallel()
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	each(t, updatable, func(t *testing.T, g *gateway) {
		g.update(t, withAdmin)
		defer g.update(t, func(map[string]any) {})
		shipped, other := otherBuild(t)
		dir := t.TempDir()
		script := strings.NewReplacer(
			"127.0.0.1:10000", g.addr, "127.0.0.1:9901", g.envoy.Admin.Addr,
			"s|pinwheel.wasm|pinwheel-next.wasm|", "s|"+shipped+"|"+other+"|",
			"dist/pinwheel.wasm", shipped, "dist/pinwheel-next.wasm", other,
			"lds.yaml", g.resources,
			// The page leaves it to its reader to look again.
			"\ntaken\n", "\nbefore=$((before + 1)); until taken | grep \"success: $before$\"; do sleep 0.1; done; created\n",
		).Replace(strings.Join(envoytest.ShellBlocks(string(page)), "\n"))
		before := g.lds(t)[updatesAccepted]
		created := g.created(t)
		out := runScript(t, dir, "before=$START\nrestart() { echo \"restarted $1\"; }\n"+
			"created() { curl -s $ADMIN/stats | grep v8.created; }\n"+script,
			"PATH="+withCurl(t, dir), "secret="+adminSecret, "START="+strconv.FormatUint(before, 10), "ADMIN="+g.envoy.Admin.Addr)
		if n := g.created(t) - created; n < 4 {
			t.Errorf("%d new VMs by the update, want 4:\n%s", n, out)
		}
		for _, want := range []string{`"versions":{"pinwheel":`, `pinwheel_sessions{`, "listener_manager.lds.update_rejected: "} {
			if !strings.Contains(out, want) {
				t.Errorf("the commands did not print %q:\n%s", want, out)
			}
		}
		for _, r := range g.replicas {
			if !strings.Contains(out, "restarted "+r.Addr+"\n") || !strings.Contains(out, `"replica":"`+r.Addr+`","state":"active"`) {
				t.Errorf("%s was not restarted and taken back:\n%s", r.Addr, out)
			}
		}
	})
}

// What the page tells to look for in the log is what the plugin writes.
func TestOperationsPageKnowsTheLog(t *testing.T) {
	root, err := envoytest.Root()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile(filepath.Join(root, "docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "\n## Log lines\n")
	section, _, _ = strings.Cut(section, "\n## ")
	files, err := filepath.Glob(filepath.Join(root, "plugin", "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	var code strings.Builder
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(f, "_test.go") {
			code.Write(text)
		}
	}
	lines := regexp.MustCompile("(?m)^\\| (`.*?) \\|").FindAllStringSubmatch(section, -1)
	for _, row := range lines {
		for _, part := range regexp.MustCompile("`(.+?)`").FindAllStringSubmatch(row[1], -1) {
			if !strings.Contains(code.String(), part[1]) {
				t.Errorf("no log line of the plugin has %q", part[1])
			}
		}
	}
	if len(lines) < 5 {
		t.Errorf("%d log lines on the page", len(lines))
	}
}

// A changed secret counts at once, but for connections of before: those are under the old configuration while it drains.
func TestSecretRotation(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		g.update(t, withAdmin)
		defer g.update(t, func(map[string]any) {})
		ask := func(c *raw, secret string) int {
			t.Helper()
			return c.send(t, "GET /pinwheel/status HTTP/1.1\r\nHost: llm\r\n"+adminHeader+": "+secret+"\r\n\r\n").Status
		}
		var old []*raw
		for range 2 {
			c := g.dial(t)
			if status := ask(c, adminSecret); status != 200 {
				t.Fatalf("the first secret: %d", status)
			}
			old = append(old, c)
		}
		const next = "another word"
		g.update(t, func(c map[string]any) { c["admin"] = map[string]any{"secret": next} })
		for i, want := range []struct {
			c      *raw
			secret string
			status int
		}{{old[0], adminSecret, 200}, {old[1], next, 401}, {g.dial(t), next, 200}, {g.dial(t), adminSecret, 401}} {
			if status := ask(want.c, want.secret); status != want.status {
				t.Errorf("%d: secret %q: %d, want %d", i, want.secret, status, want.status)
			}
		}
	})
}
