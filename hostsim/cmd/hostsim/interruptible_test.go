package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Ctrl-C ends a command that waits for its input, or has much to make; what was there before stays.
func TestTraceInterrupted(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out.jsonl")
	if err := os.WriteFile(out, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"trace stats -", "trace convert --to weka - -o " + out, "trace generate --sessions 10000000 -o " + out} {
		ctx, cancel := context.WithCancel(t.Context())
		silent, hold := io.Pipe()
		cancel()
		var stdout, stderr bytes.Buffer
		root := newRoot()
		root.SetIn(silent)
		root.SetOut(&stdout)
		root.SetErr(&stderr)
		root.SetArgs(strings.Fields(line))
		if err := root.ExecuteContext(ctx); err == nil || !strings.Contains(err.Error(), "interrupted") || stdout.Len() > 0 {
			t.Errorf("%s: %v, %s", line, err, stdout.String())
		}
		hold.Close()
		if text, err := os.ReadFile(out); err != nil || string(text) != "old" {
			t.Errorf("%s leaves %.20q, %v", line, text, err)
		}
	}
}
