package suite

import (
	"strings"
	"testing"
)

func TestDiff(t *testing.T) {
	long := strings.Repeat("a", 100)
	tests := []struct{ want, got, diff string }{
		{"a", "b", "- a\n+ b"},
		{"", "b", "+ b"},
		{"a\nb\nc", "a\nc", "  a\n- b\n  c"},
		{"1\n2\n3\n4\n5\n6", "1\n2\n3\n4\n5\n7", "  ...\n  4\n  5\n- 6\n+ 7"},
		{"x\n1\n2\n3", "y\n1\n2\n3", "- x\n+ y\n  1\n  2\n  ..."},
		{"a\x1b[2J", "\xff", "- a?[2J\n+ ?"},
		{long + long, long + "b" + long, "- ..." + long[:40] + long + " (200 bytes)\n+ ..." + long[:40] + "b" + long + " (201 bytes)"},
	}
	for _, tt := range tests {
		if got := diff(tt.want, tt.got); got != tt.diff {
			t.Errorf("%q and %q:\n%s\nwant\n%s", tt.want, tt.got, got, tt.diff)
		}
	}
	if lines := strings.Count(diff("", strings.Repeat("a\n", 1000)), "\n"); lines > diffShown {
		t.Errorf("%d lines", lines)
	}
}

func TestNearest(t *testing.T) {
	words := []string{"body", "headers", "path"}
	for word, want := range map[string]string{"bdy": "body", "hedaers": "headers", "Path": "path", "pahts": "path"} {
		if got := orNearest(word, words); got != `nearest is "`+want+`"` {
			t.Errorf("%s: %s", word, got)
		}
	}
	for _, word := range []string{"", "x", "status", "code", strings.Repeat("body", 100)} {
		if got := orNearest(word, words); got != "allowed: body, headers, path" {
			t.Errorf("%s: %s", word, got)
		}
	}
}

// A mapping as configuration arrives as JSON, its keys in the order of the text.
func TestConfigurationIsJSON(t *testing.T) {
	text := `plugin: {config: {z: 1, a: [1_000, 0x10, 1.50, 1e3, true, ~, no, 2026-01-01, "<&>", "1"], "k.x": {}}}` + "\ncases: [{name: a, request: {}}]"
	want := `{"z":1,"a":[1000,16,1.5,1000,true,null,"no","2026-01-01","<&>","1"],"k.x":{}}`
	if got := string(parse(t, text).base.config.PluginConfig); got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
