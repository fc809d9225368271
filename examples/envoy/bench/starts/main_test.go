package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// Ratios are of one round each: a round in which all was slow changes none.
func TestPrint(t *testing.T) {
	dir := t.TempDir()
	modules := []string{filepath.Join(dir, "a.wasm"), filepath.Join(dir, "b.wasm")}
	for i, m := range modules {
		if err := os.WriteFile(m, make([]byte, 100*(i+1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	of := func(seconds, mib, first int) start {
		ready := time.Duration(seconds) * time.Second
		return start{ready, ready / 2, int64(mib) << 20, time.Duration(first) * time.Millisecond, time.Millisecond}
	}
	var out strings.Builder
	err := print(&out, modules, [][]start{{of(1, 100, 2), of(10, 100, 2), of(1, 100, 2)}, {of(2, 150, 4), of(20, 160, 6), of(3, 150, 4)}})
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(out.String(), "\n")
	for i, want := range [][]string{
		{"module", "first request"},
		{"a.wasm", "100", "1.00 s", "0.50 s", "100 MiB", "2.0 ms", "1.00 (1.00 to 1.00)"},
		{"b.wasm", "200", "3.00 s", "2.00 (2.00 to 3.00)", "1.50 s", "150 MiB", "1.50 (1.50 to 1.60)", "4.0 ms", "2.00 (2.00 to 3.00)"},
	} {
		for _, w := range want {
			if !strings.Contains(lines[i], w) {
				t.Errorf("%q lacks %q", lines[i], w)
			}
		}
	}
}

// A process reads its own use.
func TestUsed(t *testing.T) {
	cpu, memory, err := used(os.Getpid())
	if err != nil {
		t.Skip(err) // no /proc
	}
	if memory < 1<<20 || cpu < 0 {
		t.Errorf("%v, %d bytes", cpu, memory)
	}
}
