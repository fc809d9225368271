package plugin

import "bytes"

// syntax looks for the first mistake in a JSON text (RFC 8259). encoding/json
// does that too, at the price of 42 KB of module.
type syntax struct {
	text []byte
	at   int // what comes next; of a text with a mistake, where that is
}

// maxDepth bounds the recursion. No configuration is nested deeper than five.
const maxDepth = 100

// mistake returns the offset of the first byte that is wrong, len(text) if the
// text ends too soon, or -1.
func mistake(text []byte) int {
	s := syntax{text: text}
	if s.value(maxDepth) && s.peek() == 0 && s.at == len(text) {
		return -1
	}
	return s.at
}

// peek passes over blanks and returns the byte that comes next; 0 may be the end.
func (s *syntax) peek() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\n', '\r':
		default:
			return c
		}
	}
	return 0
}

// take passes over c if that comes next, after blanks.
func (s *syntax) take(c byte) bool {
	if s.peek() != c || s.at == len(s.text) {
		return false
	}
	s.at++
	return true
}

func (s *syntax) value(depth int) bool {
	switch c := s.peek(); {
	case depth == 0:
		return false
	case c == '{':
		return s.items('}', depth)
	case c == '[':
		return s.items(']', depth)
	case c == '"':
		return s.quoted()
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	}
	for _, word := range [...]string{"true", "false", "null"} {
		if bytes.HasPrefix(s.text[s.at:], []byte(word)) {
			s.at += len(word)
			return true
		}
	}
	return false
}

// items reads an object or a list from its bracket to the closing one.
func (s *syntax) items(closing byte, depth int) bool {
	s.at++
	if s.take(closing) {
		return true
	}
	for {
		if closing == '}' && !(s.peek() == '"' && s.quoted() && s.take(':')) {
			return false
		}
		if !s.value(depth - 1) {
			return false
		}
		if !s.take(',') {
			return s.take(closing)
		}
	}
}

// quoted reads a string from its first quote to its last.
func (s *syntax) quoted() bool {
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return true
		case c < ' ':
			return false
		case c == '\\' && !s.escape():
			return false
		}
	}
	return false
}

// escape reads an escape from its backslash and stops at its last byte.
func (s *syntax) escape() bool {
	if s.at++; s.at == len(s.text) || bytes.IndexByte([]byte(`"\/bfnrtu`), s.text[s.at]) < 0 {
		return false
	}
	if s.text[s.at] != 'u' {
		return true
	}
	for range 4 {
		if s.at++; s.at == len(s.text) || hex(s.text[s.at]) < 0 {
			return false
		}
	}
	return true
}

func (s *syntax) number() bool {
	if s.text[s.at] == '-' {
		s.at++
	}
	if s.is('0') { // no digit may follow
		s.at++
	} else if !s.digits() {
		return false
	}
	if s.is('.') {
		if s.at++; !s.digits() {
			return false
		}
	}
	if s.is('e') || s.is('E') {
		if s.at++; s.is('+') || s.is('-') {
			s.at++
		}
		return s.digits()
	}
	return true
}

func (s *syntax) is(c byte) bool { return s.at < len(s.text) && s.text[s.at] == c }

// digits passes over digits and reports whether there was one.
func (s *syntax) digits() bool {
	begin := s.at
	for s.at < len(s.text) && '0' <= s.text[s.at] && s.text[s.at] <= '9' {
		s.at++
	}
	return s.at > begin
}
