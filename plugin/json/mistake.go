package json

import (
	"strconv"
	"unsafe"
)

// What may come next in a JSON text, besides white space.
const (
	aValue     = iota
	valueOrEnd // of a list that has none yet
	aKey
	keyOrEnd
	colon
	next // a comma, or the end of what is open
)

// maxDepth bounds nesting, as encoding/json does.
const maxDepth = 10_000

// Mistake says what keeps a text from being a JSON value (RFC 8259), in the words of encoding/json, and how many bytes that
// had read when it said so; "" if the text is one. Cost: O(len(text)), and a byte for each level of nesting, of which there
// may be 10,000.
func Mistake(text string) (read int, wrong string) {
	s := blankEnded(text)
	var open []byte // what ends each object and list, from the outside in
	state := aValue
	end := byte(0) // of open
	for i := 0; i <= len(s); i++ {
		if i += blanks(text[i:]); i == len(s) {
			break
		}
		c, context := s[i], ""
		switch {
		case end != 0 && c == end && (state == valueOrEnd || state == keyOrEnd || state == next):
			open, end, state = open[:len(open)-1], 0, next
			if len(open) > 0 {
				end = open[len(open)-1]
			}
		case c == ',' && state == next && end == '}':
			state = aKey
		case c == ',' && state == next && end == ']':
			state = aValue
		case c == ':' && state == colon:
			state = aValue
		case c == '"' && (state == aKey || state == keyOrEnd):
			i, context = s.stringEnd(i)
			state = colon
		case state == aKey || state == keyOrEnd:
			context = "looking for beginning of object key string"
		case state == colon:
			context = "after object key"
		case state == next && end == '}':
			context = "after object key:value pair"
		case state == next && end == ']':
			context = "after array element"
		case state == next:
			context = "after top-level value"
		case c == '{' || c == '[':
			end = c + 2 // as both brackets have it
			if open, state = append(open, end), valueOrEnd; c == '{' {
				state = keyOrEnd
			}
			if len(open) > maxDepth {
				context = "exceeded max depth"
			}
		default:
			i, context = s.scalar(i)
			state = next
		}
		if i > len(s) { // within a string
			state = aValue
		} else if context != "" {
			return min(i+1, len(text)), "invalid character " + quoteByte(s.at(i)) + " " + context
		}
	}
	if state != next || len(open) > 0 {
		return len(text), "unexpected end of JSON input"
	}
	return 0, ""
}

// blankEnded is a text with a blank behind it, which ends a number or a word.
type blankEnded string

func (s blankEnded) at(i int) byte {
	if i < len(s) {
		return s[i]
	}
	return ' '
}

// quoteByte spells a byte as the character of that number.
func quoteByte(c byte) string {
	switch c {
	case '\'':
		return `'\''`
	case '"':
		return `'"'`
	}
	s := strconv.Quote(string(rune(c)))
	return "'" + s[1:len(s)-1] + "'"
}

// scalar reads the string, number or word that begins at i: it returns where its last byte is; or where a byte is wrong,
// and in what.
func (s blankEnded) scalar(i int) (at int, context string) {
	switch c := s.at(i); {
	case c == '"':
		return s.stringEnd(i)
	case c == '-' || digit(c):
		return s.number(i)
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if s.at(i) != word[0] {
			continue
		}
		for j := 1; j < len(word); j++ {
			if s.at(i+j) != word[j] {
				return i + j, "in literal " + word + " (expecting '" + word[j:j+1] + "')"
			}
		}
		return i + len(word) - 1, ""
	}
	return i, "looking for beginning of value"
}

func (s blankEnded) number(i int) (at int, context string) {
	if s.at(i) == '-' {
		i++
	}
	if !digit(s.at(i)) {
		return i, "in numeric literal"
	}
	if s.at(i) != '0' {
		i = s.digits(i)
	} else {
		i++
	}
	if s.at(i) == '.' {
		if i++; !digit(s.at(i)) {
			return i, "after decimal point in numeric literal"
		}
		i = s.digits(i)
	}
	if s.at(i)|' ' == 'e' {
		if i++; s.at(i) == '+' || s.at(i) == '-' {
			i++
		}
		if !digit(s.at(i)) {
			return i, "in exponent of numeric literal"
		}
		i = s.digits(i)
	}
	return i - 1, ""
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// digits returns where the digits from i on end.
func (s blankEnded) digits(i int) int {
	for digit(s.at(i)) {
		i++
	}
	return i
}

// stringEnd returns a position behind the blank for a string without an end.
func (s blankEnded) stringEnd(i int) (at int, context string) {
	for i++; i <= len(s); i++ {
		for i < len(s) && s[i] > '"' && s[i] != '\\' { // most of them
			i++
		}
		switch c := s.at(i); {
		case c == '"':
			return i, ""
		case c < ' ':
			return i, "in string literal"
		case c == '\\':
			if i++; i > len(s) {
				return i, ""
			}
			switch s.at(i) {
			case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			case 'u':
				for range 4 {
					if i++; i > len(s) {
						return i, ""
					}
					if c := s.at(i) | ' '; !digit(s.at(i)) && (c < 'a' || c > 'f') {
						return i, `in \u hexadecimal character escape`
					}
				}
			default:
				return i, "in string escape code"
			}
		}
	}
	return i, ""
}

// Valid reports whether the text is a JSON value.
func Valid(text []byte) bool {
	_, wrong := Mistake(unsafe.String(unsafe.SliceData(text), len(text)))
	return wrong == ""
}
