package main

import (
	"strings"
	"testing"
)

func TestCompletion(t *testing.T) {
	const files, none = ":8", ":36" // what the shell is told: only files with these endings; no files, in this order
	tests := []struct{ line, want string }{
		{"run|", "yaml yml " + files},
		{"run|a.yaml|", "yaml yml " + files},
		{"run|--profile|", "envoy-1.40 envoy-1.36 permissive " + none},
		{"run|--wasm|", "wasm " + files},
		{"serve|--profile|", "envoy-1.40 envoy-1.36 permissive " + none},
		{"serve|--wasm|", "wasm " + files},
		{"serve|--config|", "json " + files},
		{"inspect|", "wasm " + files},
		{"inspect|a.wasm|", ":4"},
		{"demo|--wasm|", "wasm " + files},
	}
	for _, tt := range tests {
		_, stdout, _ := command(append([]string{"__complete"}, strings.Split(tt.line, "|")...)...)
		if got := strings.Join(strings.Fields(stdout), " "); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.line, got, tt.want)
		}
	}
	_, stdout, _ := command("__complete", "")
	for _, name := range []string{"run", "serve", "inspect", "demo", "completion"} {
		if !strings.Contains(stdout, "\n"+name+"\t") && !strings.HasPrefix(stdout, name+"\t") {
			t.Errorf("no %s in\n%s", name, stdout)
		}
	}
}

func TestCompletionScripts(t *testing.T) {
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if code, stdout, _ := command("completion", shell); code != 0 || !strings.Contains(stdout, "hostsim") {
			t.Errorf("%s: exit %d, %d bytes", shell, code, len(stdout))
		}
	}
}

// Every command shows how it is used.
func TestCommandsHaveExamples(t *testing.T) {
	for _, cmd := range newRoot().Commands() {
		if !strings.Contains(cmd.Example, "hostsim "+cmd.Name()+" ") {
			t.Errorf("%s has no example", cmd.Name())
		}
	}
}
