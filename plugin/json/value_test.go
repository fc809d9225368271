package json

import (
	stdjson "encoding/json"
	"strings"
	"testing"

	"github.com/tidwall/gjson"
)

func TestGet(t *testing.T) {
	const text = ` {"a":{"b":[1,{"c":"x"}],"d":"q\"\u00e9\ud83d\ude00"},"n":-1.5e2,"t":true,"f":false,"z":null,"a":"second","e":{},"":{"":7}} `
	for path, want := range map[string]Result{
		"a.b": {Type: JSON, Raw: `[1,{"c":"x"}]`}, "a.d": {Type: String, Raw: `"q\"\u00e9\ud83d\ude00"`, Str: "q\"é😀"},
		"n": {Type: Number, Raw: "-1.5e2", Num: -150}, "t": {Type: True, Raw: "true"}, "f": {Type: False, Raw: "false"},
		"z": {Raw: "null"}, "e": {Type: JSON, Raw: "{}"}, "e.x": {}, "x": {}, "a.x": {}, "n.x": {}, "a.b.c": {}, ".": {Type: Number, Raw: "7", Num: 7},
	} {
		if got := Get(text, path); got != want {
			t.Errorf("%s: %+v, want %+v", path, got, want)
		}
	}
	r := Parse(text)
	if !r.IsObject() || r.IsArray() || !r.Get("a.b").IsArray() || !r.Get("f").IsBool() || r.Get("f").Bool() || !r.Get("t").Bool() ||
		!r.Get("z").Exists() || r.Get("x").Exists() || r.Get("n").Int() != -150 || r.Get("x").IsObject() || r.Get("n").IsBool() {
		t.Errorf("%+v", r)
	}
	n := 0
	r.ForEach(func(Result, Result) bool { n++; return n < 3 })
	if n != 3 {
		t.Errorf("%d members before the end was called", n)
	}
}

// gjson is the judge of what stands where, encoding/json of what strings say. Of
// what is not valid nothing is asked but to end.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`{"a":[1,-2.5e3,"b\u00e9\n\ud83d\ude00\ud83d"],"c":{"d":null,"":true}}`, `[[],{},[[{"a":false}]]]`, ` "x" `, `0`, `{"a"`, `[1,`, `{"a":"\`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := Parse(text)
		if !Valid(text) {
			walk(t, got, nil)
			return
		}
		want := gjson.Parse(text)
		walk(t, got, &want)
	})
}

func walk(t *testing.T, got Result, want *gjson.Result) {
	if want != nil {
		if got.Type.String() != want.Type.String() || got.Raw != strings.TrimSpace(want.Raw) || got.Num != want.Num {
			t.Fatalf("%+v, gjson has %+v", got, *want)
		}
		var s string
		if got.Type == String && (stdjson.Unmarshal([]byte(got.Raw), &s) != nil || s != strings.ToValidUTF8(got.Str, "\ufffd")) && strings.ToValidUTF8(got.Str, "") == got.Str {
			t.Fatalf("%q of %q", got.Str, got.Raw)
		}
	}
	var keys, values []gjson.Result
	if want != nil && (want.IsObject() || want.IsArray()) {
		want.ForEach(func(k, v gjson.Result) bool {
			keys, values = append(keys, k), append(values, v)
			return true
		})
	}
	i := 0
	got.ForEach(func(k, v Result) bool {
		if want == nil {
			walk(t, v, nil)
			return true
		}
		if i == len(values) || k.Raw != keys[i].Raw && got.IsObject() {
			t.Fatalf("member %d: %q: %q", i, k.Raw, v.Raw)
		}
		walk(t, v, &values[i])
		i++
		return true
	})
	if i != len(values) {
		t.Fatalf("%d members, gjson has %d", i, len(values))
	}
}

func (t Type) String() string { return gjson.Type(t).String() }

// What is written is read again as it was.
func FuzzAppendJSONString(f *testing.F) {
	for _, seed := range []string{"", "a\"b\\c\n\t\r\x00\x1f", "é😀\u2028<&>", "\xff\xc0x"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		text := AppendJSONString([]byte("x"), s)[1:]
		var got string
		if err := stdjson.Unmarshal(text, &got); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if want := string([]rune(s)); got != want || Parse(string(text)).Str != want {
			t.Fatalf("%q is %s", s, text)
		}
	})
}
