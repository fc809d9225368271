package suite

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestReadFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte("abcd"), 0o600); err != nil {
		t.Fatal(err)
	}
	if data, err := ReadFile(path, 4); err != nil || string(data) != "abcd" {
		t.Errorf("%q, %v", data, err)
	}
	if _, err := ReadFile(path, 3); err == nil || !strings.Contains(err.Error(), "file: larger than 0 MiB") {
		t.Errorf("one byte too many: %v", err)
	}
	if _, err := ReadFile(path+"x", 3); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("an absent file: %v", err)
	}
	if _, err := Load("/dev/zero"); err == nil || !strings.Contains(err.Error(), "/dev/zero: larger than 8 MiB") {
		t.Errorf("a file without end: %v", err)
	}
}

// A suite in which everything is wrong is told of in part.
func TestManyMistakes(t *testing.T) {
	_, err := Parse("x.yaml", []byte("cases:\n"+strings.Repeat("- nam: x\n", 500)))
	invalid := (*Invalid)(nil)
	if !errors.As(err, &invalid) {
		t.Fatal(err)
	}
	lines := strings.Split(err.Error(), "\n")
	if len(lines) != 101 || lines[100] != "and 400 more" || len(invalid.Problems) != 500 {
		t.Errorf("%d lines of %d, the last %q", len(lines), len(invalid.Problems), lines[len(lines)-1])
	}
}
