package json

import (
	stdjson "encoding/json"
	"strings"
	"testing"
)

func TestMistake(t *testing.T) {
	for _, tt := range []struct {
		text string
		at   int
	}{
		{`{}`, -1}, {` [ ] `, -1}, {`{"a":[1,{"b":null}],"c":"d"}`, -1}, {`-0.5e+10`, -1}, {`0`, -1}, {`"\u00e9\"\\\/\b"`, -1}, {`[true,false]`, -1},
		{``, 0}, {`  `, 2}, {`{`, 1}, {`[1,`, 3}, {`{"a"`, 4}, {`{"a":`, 5}, {`"a`, 2}, {`"a\`, 3}, {`"\u12`, 5}, {`-`, 1}, {`1.`, 2}, {`1e`, 2}, {`1e+`, 3},
		{`[1,]`, 3}, {`{"a":1,}`, 7}, {`{,}`, 1}, {`{"a" 1}`, 5}, {`{1:2}`, 1}, {`[1 2]`, 3}, {`[1}`, 2}, {`{"a":1]`, 6}, {`1 2`, 2}, {`{}x`, 2}, {`]`, 0},
		{`01`, 1}, {`-a`, 1}, {`.5`, 0}, {`1.e5`, 2}, {`tru`, 0}, {`nul`, 0}, {`'a'`, 0}, {`{a:1}`, 1}, {"\"a\nb\"", 2}, {`"\x"`, 2}, {`"\u00g0"`, 5},
		{"\x00", 0}, {"// no", 0}, {`[1,,2]`, 3}, {`{"a"::1}`, 5}, {`{"a":1 "b":2}`, 7},
	} {
		if at := Mistake(tt.text); at != tt.at {
			t.Errorf("%q: %d, want %d", tt.text, at, tt.at)
		}
	}
}

// encoding/json is the judge, but for depth, which it limits to 10,000.
func FuzzMistake(f *testing.F) {
	for _, seed := range []string{`{"a":[1,-2.5e3,"b\u00e9\n"],"c":{"d":null}}`, `[1,]`, `{"a":1}x`, "\"\x01\"", `[01]`, `{"a":tru}`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		at := Mistake(text)
		if valid := stdjson.Valid([]byte(text)); valid != (at < 0) && strings.Count(text, "[")+strings.Count(text, "{") < 10_000 {
			t.Fatalf("mistake at %d of %d, valid %v", at, len(text), valid)
		}
		if at > len(text) {
			t.Fatalf("mistake at %d of %d", at, len(text))
		}
	})
}
