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
			b = append(b, Unescaped(s[i]))
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
		r = r<<4 | rune(max(Hex(s[i]), 0))
	}
	return r
}

// Hex returns the value of a hexadecimal digit, -1 of anything else.
func Hex(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c|' ' && c|' ' <= 'f':
		return int(c|' '-'a') + 10
	}
	return -1
}

// Unescaped returns what a backslash and c stand for, 0 if nothing.
func Unescaped(c byte) byte {
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

// AppendString appends s as a JSON string, spelled as gjson and encoding/json do: also <, > and & are escaped, and what is no
// UTF-8 becomes U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for _, r := range s {
		switch r {
		case '"', '\\':
			dst = append(dst, '\\', byte(r))
		case '\b':
			dst = append(dst, '\\', 'b')
		case '\f':
			dst = append(dst, '\\', 'f')
		case '\n':
			dst = append(dst, '\\', 'n')
		case '\r':
			dst = append(dst, '\\', 'r')
		case '\t':
			dst = append(dst, '\\', 't')
		case '<', '>', '&', '\u2028', '\u2029':
			dst = appendUnit(dst, r)
		default:
			if r < ' ' {
				dst = appendUnit(dst, r)
			} else {
				dst = utf8.AppendRune(dst, r)
			}
		}
	}
	return append(dst, '"')
}

// appendUnit appends r, of 16 bits, as an escape.
func appendUnit(dst []byte, r rune) []byte {
	const digits = "0123456789abcdef"
	return append(dst, '\\', 'u', digits[r>>12], digits[r>>8&15], digits[r>>4&15], digits[r&15])
}
