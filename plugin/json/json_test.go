package json_test

import (
	stdjson "encoding/json"
	"errors"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/pinwheel-proxy/pinwheel/plugin/json"
)

func TestGet(t *testing.T) {
	const text = ` {"a":{"b":[1,{"c":"x"}],"d":"q\"\u00e9\ud83d\ude00"},"n":-1.5e2,"t":true,"f":false,"z":null,"a":"second","e":{},"":{"":7}} `
	for path, want := range map[string]json.Result{
		"a.b": {Type: json.JSON, Raw: `[1,{"c":"x"}]`}, "a.d": {Type: json.String, Raw: `"q\"\u00e9\ud83d\ude00"`, Str: "q\"é😀"},
		"n": {Type: json.Number, Raw: "-1.5e2", Num: -150}, "t": {Type: json.True, Raw: "true"}, "f": {Type: json.False, Raw: "false"},
		"z": {Raw: "null"}, "e": {Type: json.JSON, Raw: "{}"}, "e.x": {}, "x": {}, "a.x": {}, "n.x": {}, "a.b.c": {},
		".": {Type: json.Number, Raw: "7", Num: 7},
	} {
		if got := json.Parse(text).Get(path); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	r := json.Parse(text)
	for what, holds := range map[string]bool{
		"object": r.IsObject() && !r.Get("n").IsObject() && !r.Get("x").IsObject(), "list": r.Get("a.b").IsArray() && !r.IsArray(),
		"boolean": r.Get("f").IsBool() && !r.Get("f").Bool() && r.Get("t").Bool() && !r.Get("n").IsBool(),
		"whole":   r.Get("n").Int() == -150, "there": r.Get("z").Exists() && !r.Get("x").Exists(),
	} {
		if !holds {
			t.Errorf("%s: %+v", what, r)
		}
	}
	n := 0
	r.ForEach(func(json.Result, json.Result) bool { n++; return n < 3 })
	if n != 3 {
		t.Errorf("%d members before the end was called", n)
	}
}

// seeds have each mistake that encoding/json knows, and what borders on one.
var seeds = []string{
	`{"a":[1,-2.5e3,"b\u00e9\n\ud83d\ude00\ud83d"],"c":{"d":null,"":true}}`, `[[],{},[[{"a":false}]]]`, ` "x" `, `0`, `-0.5E+10`,
	``, ` `, `{`, `[1,`, `[1,]`, `[1 2]`, `[,`, `{"a"`, `{"a" 1}`, `{"a":`, `{"a":1,}`, `{"a":1 "b"}`, `{1`, `{,`, `{"a":1]`, `[1}`, `]`,
	`1 2`, "1\x00", `{}x`, `tru`, `trux`, `falze`, `nul`, `nulL`, `'a'`, `-`, `-a`, `01`, `1.`, `1.e`, `1e`, `1e+`, `1ex`, `.5`, `+1`,
	`"a`, `"a\`, `"\x"`, `"\u12`, `"\u00g0"`, `"\uD8`, "\"a\nb\"", "\"\x00\"", "\x00", "\xff", "\"\xff\"", "é", "// no", `{"a"::1}`,
	strings.Repeat("[", 10_000), strings.Repeat("[", 10_001), strings.Repeat(`{"a":[`, 5000) + "1",
}

// encoding/json is the judge of what is wrong, and of where.
func FuzzMistake(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		read, wrong := json.Mistake(text)
		var raw stdjson.RawMessage
		err := stdjson.Unmarshal([]byte(text), &raw)
		if err == nil {
			if wrong != "" || read != 0 || !json.Valid([]byte(text)) {
				t.Fatalf("%q at %d", wrong, read)
			}
			return
		}
		var syntax *stdjson.SyntaxError
		if !errors.As(err, &syntax) {
			t.Fatal(err)
		}
		if wrong != err.Error() || read != int(syntax.Offset) || json.Valid([]byte(text)) {
			t.Fatalf("%q at %d, encoding/json says %q at %d", wrong, read, err, syntax.Offset)
		}
	})
}

// gjson is the judge of what stands where. Of what is not valid nothing is asked but to end.
func FuzzParse(f *testing.F) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if got := json.Parse(text); json.Valid([]byte(text)) {
			want := gjson.Parse(text)
			compare(t, got, want)
		} else {
			visit(got)
		}
	})
}

func visit(r json.Result) {
	r.ForEach(func(_, v json.Result) bool {
		visit(v)
		return true
	})
}

func compare(t *testing.T, got json.Result, want gjson.Result) {
	if gjson.Type(got.Type) != want.Type || got.Raw != strings.TrimSpace(want.Raw) || got.Str != want.Str ||
		got.Num != want.Num && got.Type == json.Number || math.IsNaN(got.Num) {
		t.Fatalf("%+v, gjson has %+v", got, want)
	}
	if got.Type != json.JSON { // of which gjson says that it is one member of itself
		return
	}
	var keys, values []gjson.Result
	want.ForEach(func(k, v gjson.Result) bool {
		keys, values = append(keys, k), append(values, v)
		return true
	})
	i := 0
	got.ForEach(func(k, v json.Result) bool {
		if i == len(values) || got.IsObject() && (k.Raw != keys[i].Raw || k.Str != keys[i].Str) {
			t.Fatalf("member %d: %q: %q", i, k.Raw, v.Raw)
		}
		compare(t, v, values[i])
		i++
		return true
	})
	if i != len(values) {
		t.Fatalf("%d members, gjson has %d", i, len(values))
	}
}

// What is written is what gjson writes, and is read again as it was.
func FuzzAppendString(f *testing.F) {
	for _, seed := range []string{"", "a\"b\\c\n\t\r\b\f\x00\x1f\x7f", "é😀\u2028\u2029<&>", "\xff\xc0x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := json.AppendString([]byte("x"), s)[1:]
		if want := gjson.AppendJSONString(nil, s); string(text) != string(want) {
			t.Fatalf("%s, gjson writes %s", text, want)
		}
		if !json.Valid(text) || json.Parse(string(text)).Str != string([]rune(s)) {
			t.Fatalf("%q is %s", s, text)
		}
	})
}

func TestHex(t *testing.T) {
	for c := range 256 {
		want := -1
		if n, err := strconv.ParseUint(string([]byte{byte(c)}), 16, 8); err == nil {
			want = int(n)
		}
		if got := json.Hex(byte(c)); got != want {
			t.Errorf("Hex(%#x) is %d, want %d", c, got, want)
		}
	}
}
