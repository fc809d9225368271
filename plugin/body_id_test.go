package plugin

import (
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func bodyPaths(t testing.TB, paths ...string) (parsed []bodyPath) {
	t.Helper()
	for _, p := range paths {
		path, ok := parseBodyPath(p)
		if !ok {
			t.Fatalf("path %q is refused", p)
		}
		parsed = append(parsed, path)
	}
	return parsed
}

// idOf feeds a text in pieces of that many bytes.
func idOf(t testing.TB, text string, piece int, paths ...string) string {
	var s bodyID
	s.reset(bodyPaths(t, paths...), 256)
	for len(text) > 0 {
		n := min(piece, len(text))
		s.feed([]byte(text[:n]))
		text = text[n:]
	}
	return string(s.found())
}

// The last four conformance cases of ids in bodies are those of
// vllm-project/router#235: escaped quotes, ids that are no strings, and prompts
// that spell a member.
func TestBodyID(t *testing.T) {
	deep := strings.Repeat("[", maxBodyDepth-1)
	for _, tt := range []struct{ name, body, paths, want string }{
		{"top level", `{"session_id":"s1"}`, "session_id", "s1"},
		{"nested", `{"metadata":{"session_id":"s1"}}`, "metadata.session_id", "s1"},
		{"blanks", " {\n\t\"a\" :\r { \"b\" : \"v\" } } ", "a.b", "v"},
		{"after a prompt", `{"messages":[{"role":"user","content":"hi"}],"user":"u"}`, "user", "u"},
		{"in a list", `{"m":[{"id":"a"},{"id":"b"}]}`, "m.1.id", "b"},
		{"in a list of lists", `[[1,[2,3]],[4]]`, "0.1.1", "3"},
		{"beyond a list", `{"m":["a"]}`, "m.1", ""},
		{"a position of an object", `{"m":{"1":"x"}}`, "m.1", "x"},
		{"a key of a list", `{"m":["a"]}`, "m.x", ""},
		{"number", `{"id":17}`, "id", "17"},
		{"number as spelled", `{"id":-1.50E+2}`, "id", "-1.50E+2"},
		{"number at the end of a list", `{"id":[5]}`, "id.0", "5"},
		{"no JSON number", `{"id":1-2}`, "id", ""},
		{"empty string", `{"id":""}`, "id", ""},
		{"true", `{"id":true}`, "id", ""},
		{"false", `{"id":false}`, "id", ""},
		{"null", `{"id":null}`, "id", ""},
		{"object", `{"id":{"id":"x"}}`, "id", ""},
		{"list", `{"id":["x"]}`, "id", ""},
		{"absent", `{"ID":"x","idd":"x","i":"x"}`, "id", ""},
		{"other levels", `{"a":{"id":"x"},"b":[{"id":"y"}],"id2":{"id":"z"}}`, "id", ""},
		{"the first of two members", `{"id":"a","id":"b"}`, "id", "a"},
		{"the first of two members, whatever it is", `{"id":null,"id":"b"}`, "id", ""},
		{"the first of two parents that has it", `{"m":{"x":1},"m":{"id":"b"}}`, "m.id", "b"},
		{"order of paths, not of the body", `{"b":"2","a":"1"}`, "a b", "1"},
		{"next path", `{"b":"2"}`, "a b", "2"},
		{"next path after one without an id", `{"a":"","b":"2"}`, "a b", "2"},
		{"next path, its value first", `{"b":"2","a":null}`, "a b", "2"},
		{"one path within another", `{"a":{"b":"x"}}`, "a a.b", "x"},
		{"escaped dot", `{"a.b":"x"}`, `a\.b`, "x"},
		{"escapes", `{"id":"q\"b\\s\/t\tn\nr\rf\fb\bu\u00e9\u20AC"}`, "id", "q\"b\\s/t\tn\nr\rf\fb\bu\u00e9\u20ac"},
		{"a pair of surrogates", `{"id":"\ud83d\ude00"}`, "id", "\U0001f600"},
		{"half a pair", `{"id":"\ud83dx\ud83d"}`, "id", "\ufffdx\ufffd"},
		{"no pair", `{"id":"\ud83d\u0041\ude00\ud83d\ud83d\ude00"}`, "id", "\ufffdA\ufffd\ufffd\U0001f600"},
		{"unknown escape", `{"id":"a\xb"}`, "id", ""},
		{"bad hex", `{"id":"a\u00g0b"}`, "id", ""},
		{"any bytes", "{\"id\":\"\xff\xc0\x01\"}", "id", "\xff\xc0\x01"},
		{"escaped key", `{"i\u0064":"x"}`, "id", "x"},
		{"key with an escaped quote", `{"i\"d":"x","id":"y"}`, "id", "y"},
		{"long key", `{"` + strings.Repeat("k", 64) + `x":"x","` + strings.Repeat("k", 64) + `":"y"}`, strings.Repeat("k", 64), "y"},
		{"as deep as may be", `{"a":` + deep + strings.Repeat("]", maxBodyDepth-1) + `,"id":"x"}`, "id", "x"},
		{"too deep", `{"a":[` + deep + strings.Repeat("]", maxBodyDepth) + `,"id":"x"}`, "id", ""},
		{"a scalar", `"id"`, "id", ""},
		{"a number", `17 `, "0", ""},
		{"no JSON", `session_id=x`, "session_id", ""},
		{"JSON behind other text", `x{"id":"x"}`, "id", ""},
		{"two values", `{} {"id":"x"}`, "id", ""},
		{"a comma too many", `{"a":1,,"id":"x"}`, "id", ""},
		{"no comma", `{"a":1 "id":"x"}`, "id", ""},
		{"no colon", `{"id" "x"}`, "id", ""},
		{"a list ends an object", `{"a":1],"id":"x"}`, "id", ""},
		{"a trailing comma", `[1,]`, "1", ""},
		{"nothing", ``, "id", ""},
		{"too long", `{"id":"` + strings.Repeat("x", 300) + `"}`, "id", strings.Repeat("x", 257)},
		{"too long a number", `{"id":` + strings.Repeat("1", 300) + `}`, "id", strings.Repeat("1", 257)},

		{"a prompt that spells a member", `{"prompt":"user: x, \"user\": \"y\"","n":1}`, "user", ""},
		{"a prompt that ends in a backslash", `{"prompt":"\\","user":"y"}`, "user", "y"},
		{"a prompt that seems to end", `{"prompt":"\\\",\"user\":\"x","user":"y"}`, "user", "y"},
		{"a prompt that is JSON", `{"prompt":"{\"user\":\"x\"}"}`, "user", ""},
	} {
		for _, piece := range []int{1 << 20, 1, 2, 3, 7} {
			if got := idOf(t, tt.body, piece, strings.Fields(tt.paths)...); got != tt.want {
				t.Errorf("%s, in pieces of %d: %q, want %q", tt.name, piece, got, tt.want)
			}
		}
	}
}

// Where a text ends early it has no other id than the whole: what has not ended
// may go on.
func TestBodyIDOfATruncatedText(t *testing.T) {
	const body = `{"prompt":"a\\\"b","n":12345,"m":{"id":"s\u00e91"},"id":678}`
	for n := range body {
		if got := idOf(t, body[:n], n+1, "id"); got != "" && got != "678" {
			t.Errorf("after %q: %q", body[:n], got)
		}
		want := ""
		if n >= len(`{"prompt":"a\\\"b","n":12345,"m":{"id":"s\u00e91"`) {
			want = "s\u00e91"
		}
		if got := idOf(t, body[:n], n+1, "m.id"); got != want {
			t.Errorf("after %q: %q, want %q", body[:n], got, want)
		}
		if got := idOf(t, body[:n], n+1, "n"); got != "" && got != "12345" {
			t.Errorf("after %q: %q", body[:n], got)
		}
	}
}

// The search ends as soon as nothing can change its result.
func TestBodyIDEndsEarly(t *testing.T) {
	for _, tt := range []struct{ paths, body string }{
		{"a b", `{"a":"1"`},
		{"a b", `{"b":"2","a":null,`},
		{"a b", `{"a":"","b":true,`},
		{"a", `{}`},
		{"a", `{"b":]`},
		{"a", `12 `},
	} {
		var s bodyID
		s.reset(bodyPaths(t, strings.Fields(tt.paths)...), 256)
		s.feed([]byte(tt.body[:len(tt.body)-1]))
		if s.done() {
			t.Errorf("%s of %s: over too early", tt.paths, tt.body)
		}
		s.feed([]byte(tt.body[len(tt.body)-1:]))
		if !s.done() {
			t.Errorf("%s of %s: not over", tt.paths, tt.body)
		}
	}
}

// One scanner serves many bodies and allocates nothing.
func TestBodyIDAllocatesNothing(t *testing.T) {
	paths := bodyPaths(t, "metadata.session_id", "user")
	body := []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat("words ", 1000) + `\n"}],"user":"u","metadata":{"session_id":"s1"}}`)
	var s bodyID
	if n := testing.AllocsPerRun(100, func() {
		s.reset(paths, 256)
		for b := body; len(b) > 0; b = b[min(len(b), 1000):] {
			s.feed(b[:min(len(b), 1000)])
		}
		if string(s.found()) != "s1" {
			t.Fatal("no id")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestParseBodyPath(t *testing.T) {
	for _, p := range []string{"a", "a.b.c", "messages.0.id", `a\.b.c`, `a\*`, "user id", "é", "-1", "a.b.c.d.e.f.g.h", strings.Repeat("k", 64)} {
		if _, ok := parseBodyPath(p); !ok {
			t.Errorf("%q is refused", p)
		}
	}
	for _, p := range []string{"", ".", "a.", ".a", "a..b", "a*", "a?", "#", "a.#.b", "a|b", "@this", "!true", "{a,b}", "[a]", `a\`,
		`a.#(b=="c").d`, "a.b.c.d.e.f.g.h.i", strings.Repeat("k", 65)} {
		if path, ok := parseBodyPath(p); ok {
			t.Errorf("%q is %v", p, path)
		}
	}
}

// gjson is the judge of whole and valid texts. Of any text, a beginning has no
// other id than the whole, however it is cut, unless another path's value comes.
func FuzzBodyID(f *testing.F) {
	for _, seed := range []string{
		`{"id":"a","m":{"id":"b"}}`, `{"m":[{"id":1},{"id":-2e5}]}`, `{"id":"\ud83d\ude00\"\\","id":2}`, `[["x"],{"0":null}]`,
		`{"m":{"x":1},"m":{"id":"b"}}`, `{"i\u0064":true}`, `{"id":12`, `{"a":"\\\",\"id\":\"x"}`, `{"":{"":1}}`,
	} {
		for _, path := range []string{"id", "m.id", "m.1.id", "0.0", "0"} {
			f.Add([]byte(seed), path, uint8(3))
		}
	}
	f.Fuzz(func(t *testing.T, text []byte, path string, cut uint8) {
		parsed, ok := parseBodyPath(path)
		if !ok {
			return
		}
		find := func(pieces ...[]byte) string {
			var s bodyID
			s.reset([]bodyPath{parsed}, 1<<20)
			for _, p := range pieces {
				s.feed(p)
			}
			return string(s.found())
		}
		whole := find(text)
		n := int(cut) * len(text) / 256
		if got := find(text[:n], text[n:]); got != whole {
			t.Fatalf("%q in one piece, %q cut at %d", whole, got, n)
		}
		if got := find(text[:n]); got != "" && got != whole {
			t.Fatalf("%q of the first %d bytes, %q of all", got, n, whole)
		}
		// gjson looks for a path within a text that is one string, does not take
		// escapes out of positions, and reads positions with zeros in front.
		root := gjson.ParseBytes(text)
		if !gjson.ValidBytes(text) || !root.IsObject() && !root.IsArray() || strings.Contains(path, `\`) {
			return
		}
		for _, part := range parsed {
			if part.index < 0 && strings.Trim(part.key, "0123456789") == "" {
				return
			}
		}
		want := ""
		switch r := gjson.GetBytes(text, path); r.Type {
		case gjson.String:
			want = r.Str
		case gjson.Number:
			want = r.Raw
		}
		if whole != want {
			t.Fatalf("%q, gjson finds %q", whole, want)
		}
	})
}

// How fast a prompt is passed over, and gjson's pace for comparison.
func BenchmarkBodyID(b *testing.B) {
	paths := bodyPaths(b, "metadata.session_id")
	body := []byte(`{"messages":[{"role":"user","content":"` + strings.Repeat(`some words of a prompt, \"quoted\"\n`, 6000) + `"}],"metadata":{"session_id":"s1"}}`)
	b.Run("ours", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		var s bodyID
		for b.Loop() {
			s.reset(paths, 256)
			s.feed(body)
		}
	})
	b.Run("gjson", func(b *testing.B) {
		b.SetBytes(int64(len(body)))
		for b.Loop() {
			gjson.GetBytes(body, "metadata.session_id")
		}
	})
}
