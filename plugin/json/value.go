// Package json reads and writes JSON texts (RFC 8259) in the plugin: as much as the plugin needs of github.com/tidwall/gjson,
// under the same names, and of encoding/json the words for what is wrong. Both are the judges of its tests. They are not in the
// module because of their size: RATIONALE.md has the figures.
//
// A text is checked once, by Mistake or Valid. What follows trusts it: of a text that is not valid the results mean nothing,
// but nothing panics.
package json

import (
	"strconv"
	"strings"
)

// Type is the type of a value.
type Type uint8

const (
	// Null is JSON's null, and the type of no value at all: see Result.Exists.
	Null Type = iota
	False
	Number
	String
	True
	// JSON is an object or a list.
	JSON
)

// Result is a value. It refers to the text that it was read from.
type Result struct {
	Type Type
	// Raw is the value as it is spelled, "" for no value.
	Raw string
	// Str is a string, decoded.
	Str string
	// Num is a number; one beyond float64 is infinite.
	Num float64
}

// Exists reports whether there is a value.
func (r Result) Exists() bool { return r.Raw != "" }

// IsObject reports whether the value is an object.
func (r Result) IsObject() bool { return r.Type == JSON && r.Raw[0] == '{' }

// IsArray reports whether the value is a list.
func (r Result) IsArray() bool { return r.Type == JSON && r.Raw[0] == '[' }

// IsBool reports whether the value is true or false.
func (r Result) IsBool() bool { return r.Type == True || r.Type == False }

// Bool reports whether the value is true.
func (r Result) Bool() bool { return r.Type == True }

// Int returns the whole part of a number, 0 of anything else.
func (r Result) Int() int64 { return int64(r.Num) }

// Parse returns the value that the text is. Cost: O(len(text)), as of whatever reads in it; strings without an escape are not
// copied.
func Parse(text string) Result {
	text = text[blanks(text):]
	if text != "" && (text[0] == '{' || text[0] == '[') { // all of it, as it is valid: no need to look for its end
		return Result{Type: JSON, Raw: strings.TrimRight(text, " \t\r\n")}
	}
	r, _ := value(text)
	return r
}

// Get returns the value at a path: keys of objects joined by dots. Of several
// members with one key it is the first. Cost: O(len(text)) for each key.
func Get(text, path string) Result { return Parse(text).Get(path) }

// Get returns the value at a path within this one.
func (r Result) Get(path string) (found Result) {
	key, rest, deeper := strings.Cut(path, ".")
	if !r.IsObject() {
		return found
	}
	r.ForEach(func(k, v Result) bool {
		if k.Str != key {
			return true
		}
		found = v
		return false
	})
	if deeper {
		return found.Get(rest)
	}
	return found
}

// ForEach calls f for each member of an object or a list, in order, until it
// returns false. The key is a string; of a list's members it is no value.
func (r Result) ForEach(f func(key, value Result) bool) {
	if r.Type != JSON {
		return
	}
	object, rest := r.Raw[0] == '{', r.Raw[1:]
	for {
		rest = rest[blanks(rest):]
		if rest != "" && rest[0] == ',' {
			rest = rest[1:]
			rest = rest[blanks(rest):]
		}
		if rest == "" || rest[0] == '}' || rest[0] == ']' {
			return
		}
		var k, v Result
		if object {
			k, rest = value(rest)
			rest = rest[blanks(rest):]
			if k.Type != String || rest == "" {
				return
			}
			rest = rest[1:] // the colon
			rest = rest[blanks(rest):]
		}
		if v, rest = value(rest); !v.Exists() || !f(k, v) {
			return
		}
	}
}

// value reads the value that s begins with and returns the rest.
func value(s string) (r Result, rest string) {
	if s == "" {
		return r, ""
	}
	var n int
	switch c := s[0]; c {
	case '{', '[':
		n = compound(s)
		r.Type = JSON
	case '"':
		n = quoted(s)
		r.Type = String
		r.Str = decode(s[1:max(n-1, 1)])
	case 't', 'f', 'n':
		for n < len(s) && 'a' <= s[n] && s[n] <= 'z' {
			n++
		}
		switch c {
		case 't':
			r.Type = True
		case 'f':
			r.Type = False
		}
	default:
		for n < len(s) && strings.IndexByte("+-.eE0123456789", s[n]) >= 0 {
			n++
		}
		r.Type = Number
		r.Num, _ = strconv.ParseFloat(s[:n], 64)
	}
	r.Raw = s[:n]
	return r, s[n:]
}

// compound returns the length of the object or list that s begins with. Most of the time that reading takes is spent here.
func compound(s string) int {
	depth := 0
	for n := 0; n < len(s); n++ {
		switch c := s[n]; {
		case c < '"':
		case c == '"':
			for n++; n < len(s) && s[n] != '"'; n++ {
				if s[n] == '\\' {
					n++
				}
			}
		case c|' ' == '{': // or [, which is that bit away
			depth++
		case c|' ' == '}':
			if depth--; depth == 0 {
				return n + 1
			}
		}
	}
	return len(s)
}

// quoted returns the length of the string that s begins with.
func quoted(s string) int {
	for n := 1; n < len(s); n++ {
		switch s[n] {
		case '"':
			return n + 1
		case '\\':
			n++
		}
	}
	return len(s)
}

func blanks(s string) (n int) {
	for n < len(s) && (s[n] == ' ' || s[n] == '\n' || s[n] == '\t' || s[n] == '\r') {
		n++
	}
	return n
}
