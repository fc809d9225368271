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
		{"replay|--wasm|", "wasm " + files},
		{"replay|--engine|", "json " + files},
		{"fit|--engine|", "json " + files},
		{"replay|--gpu|", "H100 H200 GB200 :4"},
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

func TestCompletionRefusesWhatIsNoShell(t *testing.T) {
	for want, args := range map[string][]string{
		"completion knows no shell \"tcsh\": choose one of bash, fish, powershell, zsh": {"completion", "tcsh"},
		"bash takes flags only, not 1 arguments":                                        {"completion", "bash", "x"},
	} {
		code, stdout, stderr := command(args...)
		if code != exitUsage || stdout != "" || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit %d, %q, %q", args, code, stdout, stderr)
		}
	}
	if code, stdout, _ := command("completion"); code != 0 || !strings.Contains(stdout, "zsh") {
		t.Errorf("without a shell: exit %d, %q", code, stdout)
	}
}

// A file without end is refused, whichever flag names it.
func TestFilesWithoutEnd(t *testing.T) {
	for _, args := range [][]string{
		{"inspect", "/dev/zero"},
		{"run", "/dev/zero"},
		{"serve", "--upstream", "a=127.0.0.1:1", "--wasm", "/dev/null", "--config", "/dev/zero"},
	} {
		code, _, stderr := command(args...)
		if code != exitFailed || !strings.Contains(stderr, "/dev/zero: larger than ") || strings.Count(stderr, "\n") != 1 {
			t.Errorf("%v: exit %d, %q", args, code, stderr)
		}
	}
}
