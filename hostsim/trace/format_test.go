package trace

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

func TestOpenTellsTheFormat(t *testing.T) {
	tests := []struct {
		path string
		want Format
	}{
		{"testdata/weka_cc_24.ci.compact.jsonl", WEKA},
		{"testdata/weka_cc_215.rl-like.compact.jsonl", WEKA},
		{mooncakeConversation, MooncakeCompact},
	}
	for _, tt := range tests {
		text, err := os.ReadFile(tt.path)
		if err != nil {
			t.Fatal(err)
		}
		var zipped bytes.Buffer
		z := gzip.NewWriter(&zipped)
		z.Write(text)
		z.Close()
		for name, in := range map[string]io.Reader{"plain": bytes.NewReader(text), "gzip": &zipped,
			"with a byte order mark": io.MultiReader(strings.NewReader("\xef\xbb\xbf"), bytes.NewReader(text))} {
			r, got, err := Open(in, Options{})
			if err != nil || got != tt.want {
				t.Fatalf("%s, %s: format %q, %v", tt.path, name, got, err)
			}
			if s, err := r.Next(); err != nil {
				t.Errorf("%s, %s: first session %+v, %v", tt.path, name, s, err)
			}
		}
	}
}

// The line by which the format is told is read as a row, with its own number.
func TestOpenKeepsLineNumbers(t *testing.T) {
	r, _, err := Open(strings.NewReader("\n\n{\"id\":\"a\",\"r\":[]}\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = r.Next()
	var bad *LineError
	if !errors.As(err, &bad) || bad.Line != 3 {
		t.Errorf("error %v, want a bad line 3", err)
	}
}

func TestOpenRefuses(t *testing.T) {
	tests := []struct{ name, text, format, want string }{
		{"keys of nothing", `{"b":1,"a":2}`, "", `line 1 has the keys "a, b"; give one of weka, `},
		{"no JSON", "\nhello", "", "line 2 is neither a JSON object nor an array; give one of weka, "},
		{"a log", "[2026-11-30 05:02:00.100][15][info][wasm] started\n", "", "line 1 is neither a JSON object nor an array; give one of weka, "},
		{"empty", "\n \n", "", "no line to tell the format from"},
		{"no such format", "", "wekka", `"wekka": choose one of weka, `},
		{"broken gzip", "\x1f\x8b1", "", "unexpected EOF"},
	}
	for _, tt := range tests {
		_, _, err := Open(strings.NewReader(tt.text), Options{Format: Format(tt.format)})
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want %q", tt.name, err, tt.want)
		}
	}
}
