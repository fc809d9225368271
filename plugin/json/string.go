package json

import (
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// decode takes the escapes out of what stands between the quotes of a string.
func decode(s string) string {
	if strings.IndexByte(s, '\\') < 0 {
		return s
	}
	b := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' || i+1 == len(s) {
			b = append(b, s[i])
			continue
		}
		if i++; s[i] != 'u' {
			b = append(b, unescaped(s[i]))
			continue
		}
		r := codeUnit(s[i+1:])
		i += 4
		if utf16.IsSurrogate(r) && strings.HasPrefix(s[min(i+1, len(s)):], `\u`) {
			if pair := utf16.DecodeRune(r, codeUnit(s[i+3:])); pair != utf8.RuneError {
				r = pair
				i += 6
			}
		}
		b = utf8.AppendRune(b, r)
	}
	return string(b)
}

// codeUnit reads the digits of \u.
func codeUnit(s string) (r rune) {
	for i := range min(4, len(s)) {
		r = r<<4 | rune(max(hex(s[i]), 0))
	}
	return r
}

func hex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|' ' && c|' ' <= 'f':
		return int(c|' '-'a') + 10
	}
	return -1
}

// unescaped returns what a backslash and c stand for, 0 if nothing.
func unescaped(c byte) byte {
	switch c {
	case '"', '\\', '/':
		return c
	case 'b':
		return '\b'
	case 'f':
		return '\f'
	case 'n':
		return '\n'
	case 'r':
		return '\r'
	case 't':
		return '\t'
	}
	return 0
}

// AppendJSONString appends s as a JSON string. What is no UTF-8 becomes U+FFFD.
func AppendJSONString(dst []byte, s string) []byte {
	const digits = "0123456789abcdef"
	dst = append(dst, '"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			dst = append(dst, '\\', byte(r))
		case r == '\n':
			dst = append(dst, '\\', 'n')
		case r == '\t':
			dst = append(dst, '\\', 't')
		case r == '\r':
			dst = append(dst, '\\', 'r')
		case r < ' ':
			dst = append(dst, '\\', 'u', '0', '0', digits[r>>4], digits[r&15])
		default:
			dst = utf8.AppendRune(dst, r)
		}
	}
	return append(dst, '"')
}
