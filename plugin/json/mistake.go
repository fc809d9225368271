package json

import (
	"strings"
	"unsafe"
)

// Mistake returns the offset of the byte at which the text stops being a JSON value
// (RFC 8259), its length if it ends too early, or -1. Cost: O(len(text)), and a byte
// for each level of nesting.
func Mistake(text string) int {
	const (
		value      = iota
		valueOrEnd // of a list that has none yet
		key
		keyOrEnd
		colon
		next // a comma, or the end of what is open
	)
	var open []byte // what ends each object and list, from the outside in
	state := value
	for i := 0; i < len(text); i++ {
		c, end := text[i], byte(0)
		if len(open) > 0 {
			end = open[len(open)-1]
		}
		switch {
		case c == ' ' || c == '\t' || c == '\n' || c == '\r':
		case end != 0 && c == end && (state == valueOrEnd || state == keyOrEnd || state == next):
			open, state = open[:len(open)-1], next
		case state == next && c == ',' && end != 0:
			if state = value; end == '}' {
				state = key
			}
		case state == colon && c == ':':
			state = value
		case (state == value || state == valueOrEnd) && c == '{':
			open, state = append(open, '}'), keyOrEnd
		case (state == value || state == valueOrEnd) && c == '[':
			open, state = append(open, ']'), valueOrEnd
		case state == colon || state == next || c != '"' && (state == key || state == keyOrEnd):
			return i
		default:
			n, ok := scalar(text[i:])
			if i += n; !ok {
				return i
			}
			i--
			if state == key || state == keyOrEnd {
				state = colon
			} else {
				state = next
			}
		}
	}
	if state == next && len(open) == 0 {
		return -1
	}
	return len(text)
}

// scalar returns the length of the string, number or word that s begins with, or
// the offset of what is wrong with it.
func scalar(s string) (n int, ok bool) {
	if s[0] == '"' {
		return stringEnd(s)
	}
	for _, word := range []string{"true", "false", "null"} {
		if strings.HasPrefix(s, word) {
			return len(word), true
		}
	}
	if s[0] == '-' {
		n++
	}
	whole := digits(s[n:])
	if whole == 0 || whole > 1 && s[n] == '0' {
		return n + min(whole, 1), false
	}
	n += whole
	if n < len(s) && s[n] == '.' {
		fraction := digits(s[n+1:])
		if n += 1 + fraction; fraction == 0 {
			return n, false
		}
	}
	if n < len(s) && (s[n] == 'e' || s[n] == 'E') {
		if n++; n < len(s) && (s[n] == '+' || s[n] == '-') {
			n++
		}
		exponent := digits(s[n:])
		return n + exponent, exponent > 0
	}
	return n, true
}

func digits(s string) (n int) {
	for n < len(s) && '0' <= s[n] && s[n] <= '9' {
		n++
	}
	return n
}

func stringEnd(s string) (n int, ok bool) {
	for n = 1; n < len(s); n++ {
		switch c := s[n]; {
		case c == '"':
			return n + 1, true
		case c < ' ':
			return n, false
		case c != '\\':
		case n+1 < len(s) && s[n+1] == 'u':
			for range 4 {
				if n++; n+1 >= len(s) || hex(s[n+1]) < 0 {
					return min(n+1, len(s)), false
				}
			}
			n++
		case n+1 < len(s) && unescaped(s[n+1]) == 0:
			return n + 1, false
		default:
			n++
		}
	}
	return len(s), false
}

// Valid reports whether the text is a JSON value.
func Valid(text string) bool { return Mistake(text) < 0 }

// ValidBytes reports whether the text is a JSON value.
func ValidBytes(text []byte) bool { return Valid(unsafe.String(unsafe.SliceData(text), len(text))) }
