package clients

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
	"go.yaml.in/yaml/v4"
)

func readme(t *testing.T) string {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	return string(page)
}

// The README's commands run as printed, in one shell, but for the ports.
func TestReadmeCommands(t *testing.T) {
	bin, err := wheel.Find(t.Context(), wheel.Versions[0])
	if err != nil {
		t.Fatal(err)
	}
	node, dir := sdks(t)[1].program, t.TempDir()
	var ports []string
	for _, p := range []string{"10000", "9901", "8001", "8002", "8003"} {
		free := freePort(t)
		ports = append(ports, "port_value: "+p+"}", "port_value: "+free+"}", "127.0.0.1:"+p, "127.0.0.1:"+free)
	}
	move := strings.NewReplacer(ports...).Replace
	config, err := os.ReadFile(filepath.Join(root, "examples", "envoy", "envoy.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "envoy.yaml"), []byte(move(string(config))), 0o644); err != nil {
		t.Fatal(err)
	}
	script := strings.NewReplacer(
		"make wasm clients", ":", // the suite runs on what is there
		"examples/envoy/envoy.yaml", filepath.Join(dir, "envoy.yaml"),
		"dist/clients.yaml", filepath.Join(dir, "clients.yaml"),
		"dist/replicas &", filepath.Join(dir, "replicas")+move(" 127.0.0.1:8001 127.0.0.1:8002 127.0.0.1:8003 &"),
		"dist/replicas", filepath.Join(dir, "replicas"),
		"--log-level", "--disable-hot-restart --log-level",
	).Replace(move(strings.Join(envoytest.ShellBlocks(readme(t)), "\n")))
	path, err := envoytest.PathWithCurl(dir)
	if err != nil {
		t.Fatal(err)
	}
	out, err := envoytest.RunScript(t.Context(), root, script,
		"ENVOY="+bin, "PATH="+filepath.Dir(node)+":"+path, "NO_PROXY=127.0.0.1", "PYTHONDONTWRITEBYTECODE=1")
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if turns := turnLine.FindAllStringSubmatch(out, -1); len(turns) != 6 || turns[2][4] != turns[0][4] || turns[5][4] != turns[3][4] {
		t.Errorf("turns %q, want three of Python on one replica and three of Node", turns)
	}
	for pattern, want := range map[string]string{
		`"open_sessions":\d+`:                `"open_sessions":1 "open_sessions":0 "open_sessions":0`,
		`80 rollouts, \d+ failed, \d+ turns`: "80 rollouts, 0 failed, 240 turns",
		`"index":1`:                          `"index":1`, // the second choice of the turn that asks for two
		`{"status":"ok",.*`:                  `{"status":"ok","session_id":"by-hand"}`,
	} {
		if got := strings.Join(regexp.MustCompile(pattern).FindAllString(out, -1), " "); got != want {
			t.Errorf("%s: %q, want %q, in\n%s", pattern, got, want, out)
		}
	}
	// The page's example of what is printed has the form of it.
	shown := envoytest.Blocks(readme(t), "text")[0]
	if len(turnLine.FindAllString(shown, -1)) != 2 || !strings.Contains(shown, `"totals":{"open_sessions":0`) {
		t.Errorf("the page shows\n%s", shown)
	}
}

// What the page shows of code stands in the files, and its YAML is YAML.
func TestReadmeExcerpts(t *testing.T) {
	for language, file := range map[string]string{"python": "python/pinwheel_session.py", "js": "node/session.mjs"} {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, excerpt := range envoytest.Blocks(readme(t), language) {
			for line := range strings.Lines(excerpt) {
				if !strings.Contains(string(text), strings.TrimSpace(line)) {
					t.Errorf("%s has no line %q", file, line)
				}
			}
		}
	}
	for _, excerpt := range envoytest.Blocks(readme(t), "yaml") {
		var config struct {
			Model struct {
				Kinds struct {
					VLLM map[string]string `yaml:"vllm_model"`
				} `yaml:"responses_api_models"`
			} `yaml:"policy_model"`
		}
		err := yaml.Unmarshal([]byte(excerpt), &config)
		if err != nil || config.Model.Kinds.VLLM["session_affinity_header"] != "X-Session-ID" {
			t.Errorf("%v in\n%s", err, excerpt)
		}
	}
}

// The page's table has all headers of the preset.
func TestReadmeHasThePreset(t *testing.T) {
	code, err := os.ReadFile(filepath.Join(root, "plugin", "config.go"))
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`(?s)"agents": \{(.*?)\}`).FindStringSubmatch(string(code))
	if list == nil {
		t.Fatal("plugin/config.go has no preset agents")
	}
	names := regexp.MustCompile(`"([a-z-]+)"`).FindAllStringSubmatch(list[1], -1)
	if len(names) < 7 {
		t.Errorf("only %d headers found", len(names))
	}
	_, table, _ := strings.Cut(readme(t), "## What clients and trainers send already")
	for _, name := range names {
		if !strings.Contains(strings.ToLower(table), "`"+name[1]+"`") {
			t.Errorf("the page does not name %s", name[1])
		}
	}
}
