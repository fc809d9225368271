package embedded

import (
	"encoding/json"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

const root = "../.."

// TestMain plays curl when the page's commands call it, for a machine need not have it.
func TestMain(m *testing.M) {
	envoytest.ActAsCurl()
	os.Exit(m.Run())
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// built is the path of a file in dist, which make build wasm makes.
func built(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join(root, "dist", name))
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("%v: `make build wasm` builds it", err)
	}
	return path
}

// freePorts replaces ports that a text names by free ones, the same for the same.
func freePorts(t *testing.T, text string, ports ...string) string {
	t.Helper()
	for _, p := range ports {
		if !strings.Contains(text, ":"+p) {
			t.Fatalf("nothing is on port %s", p)
		}
		free, err := envoytest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
		text = strings.ReplaceAll(text, ":"+p, ":"+strconv.Itoa(free))
	}
	return text
}

// The page's commands, one after another in one shell, print what the page shows, and its access line has the keys of a
// real one.
func TestPage(t *testing.T) {
	page, dir := read(t, root+"/docs/embedded-gateway.md"), t.TempDir()
	replicas := filepath.Join(dir, "replicas")
	const build = "make build wasm\ngo build -o dist/replicas ./examples/envoy/replicas\n"
	if out, err := exec.Command("go", "build", "-o", replicas, "../envoy/replicas").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	script := strings.Join(envoytest.ShellBlocks(page), "")
	for _, swap := range [][2]string{{build, ""}, {"\ndist/replicas ", "\n" + replicas + " >/dev/null "}, {"dist/hostsim serve", built(t, "hostsim") + " serve >/dev/null"}, {"dist/pinwheel.wasm", built(t, "pinwheel.wasm")}} {
		if strings.Count("\n"+script, swap[0]) != 1 {
			t.Fatalf("the page's commands have %q not once", swap[0])
		}
		script = strings.TrimPrefix(strings.Replace("\n"+script, swap[0], swap[1], 1), "\n")
	}
	script = freePorts(t, script, "8001", "8002", "8080", "8081")
	path, err := envoytest.PathWithCurl(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	got, err := envoytest.RunScript(t.Context(), dir, script, "PATH="+path)
	got = strings.ReplaceAll(got, "\r", "")
	// The stand-in for curl writes names of headers in lower case.
	if want := strings.Join(envoytest.Blocks(page, "text"), ""); err != nil || !strings.EqualFold(got, want) {
		t.Errorf("%v, printed:\n%s\nshown:\n%s", err, got, want)
	}
	lines := strings.Split(strings.TrimSpace(read(t, filepath.Join(dir, "access.jsonl.1"))), "\n")
	shown := strings.TrimSpace(strings.Join(envoytest.Blocks(page, "jsonl"), ""))
	if got, want := keys(t, lines[len(lines)-1]), keys(t, shown); !slices.Equal(got, want) {
		t.Errorf("an access line has %v, the page's %v", got, want)
	}
	if len(lines) < 5 || len(keys(t, read(t, filepath.Join(dir, "access.jsonl")))) == 0 {
		t.Errorf("%d lines before the rotation", len(lines))
	}
	for _, key := range append(keys(t, shown), "detail", "end") {
		if !regexp.MustCompile("(?m)^\\|[^|]*`" + key + "`[^|]*\\|").MatchString(page) {
			t.Errorf("the page's table lacks the key %s", key)
		}
	}
}

func keys(t *testing.T, line string) []string {
	t.Helper()
	fields := map[string]any{}
	if err := json.Unmarshal([]byte(line), &fields); err != nil {
		t.Fatalf("%v in %s", err, line)
	}
	return slices.Sorted(maps.Keys(fields))
}

// What root is asked to install is there, and goes where the unit file looks for it.
func TestInstallation(t *testing.T) {
	page, unit := read(t, root+"/docs/embedded-gateway.md"), read(t, "hostsim.service")
	install := regexp.MustCompile(`(?m)^# install .*-t (\S+) (\S+)$`).FindAllStringSubmatch(page, -1)
	if len(install) != 4 {
		t.Fatalf("%d files to install", len(install))
	}
	for _, m := range install {
		if name := filepath.Base(m[2]); strings.HasPrefix(m[2], "dist/") {
			built(t, name)
		}
		if at := m[1] + "/" + filepath.Base(m[2]); m[1] != "/etc/systemd/system" && !strings.Contains(unit, at) {
			t.Errorf("%s is not in the unit file", at)
		}
	}
}
