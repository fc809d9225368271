package plugin

import (
	"encoding/json"
	"strings"
	"testing"
)

// syntaxes are texts around every rule of the grammar.
var syntaxes = []string{
	"", " ", "{}", " [ ] ", "[1,2]", "[1,]", "[,1]", "[1 2]", "{\"a\":1}", "{\"a\":1,}", "{\"a\" 1}", "{a:1}", "{\"a\":}", "{,}",
	"{\"a\":1", "[1", "\"", "\"a", "\"a\\", "\"\\u12", "\"\\u12g4\"", "\"\\u12F4\"", "\"\\x\"", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\t\"", "\"\x7f\xff\"",
	"0", "-0", "01", "-", "-a", "1.", "1.5", ".5", "1e", "1e+", "1E-7", "1e5.5", "+1", "0x1", "1_0", "NaN",
	"true", "truex", "tru", "null", "nulll", "false ", "false false", "{} x", "// c\n{}", "{}\x00", "\x00", "\ufeff{}", "'a'",
	"{\"a\":{\"b\":[{},[[1]],\"c\",null,true,-1.5e3]}}",
}

// agrees fails unless encoding/json says the same of the text.
func agrees(t *testing.T, text string) {
	t.Helper()
	i := mistake([]byte(text))
	if (i < 0) != json.Valid([]byte(text)) && strings.Count(text, "[")+strings.Count(text, "{") < maxDepth {
		t.Fatalf("%q: mistake at %d, valid %v", text, i, i >= 0)
	}
	if i > len(text) {
		t.Fatalf("%q: mistake at %d of %d", text, i, len(text))
	}
	// Where one says that the mistake is, the other stops too.
	var raw json.RawMessage
	if err, ok := json.Unmarshal([]byte(text), &raw).(*json.SyntaxError); ok && i >= 0 && i < len(text) && i != int(err.Offset)-1 {
		// A word is checked as a whole here.
		if c := text[i]; c != 't' && c != 'f' && c != 'n' && strings.Count(text, "[")+strings.Count(text, "{") < maxDepth {
			t.Fatalf("%q: mistake at %d, want %d (%v)", text, i, err.Offset-1, err)
		}
	}
}

func TestSyntaxAgreesWithEncodingJSON(t *testing.T) {
	for _, text := range syntaxes {
		agrees(t, text)
		for i := range len(text) { // cut short, and without one byte
			agrees(t, text[:i])
			agrees(t, text[:i]+text[i+1:])
		}
	}
}

func TestSyntaxIsBoundedInDepth(t *testing.T) {
	for _, text := range []string{strings.Repeat("[", 1e6), strings.Repeat(`{"a":`, 1e6)} {
		if i := mistake([]byte(text)); i < 0 || i > 10*maxDepth {
			t.Errorf("mistake at %d", i)
		}
	}
}

func FuzzSyntax(f *testing.F) {
	for _, text := range syntaxes {
		f.Add(text)
	}
	f.Fuzz(agrees)
}
