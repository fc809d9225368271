package plugin

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/pinwheel-proxy/pinwheel/plugin/json"
)

// inString reads on in a string and returns the number of bytes read.
func (s *bodyID) inString(b []byte) int {
	n := plainBytes(b)
	if n > 0 {
		s.unpaired()
	}
	if room := s.keep - len(s.text); room > 0 {
		s.text = append(s.text, b[:min(n, room)]...)
	}
	if n == len(b) {
		return n
	}
	if b[n] == '\\' {
		s.state += scanKeyEscape - scanInKey
		return n + 1
	}
	s.unpaired()
	if s.state == scanInKey {
		s.matchKey()
		s.state = scanColon
		return n + 1
	}
	s.settle(s.keep >= 0)
	s.ended()
	return n + 1
}

// plainBytes returns the number of bytes before the first quote or backslash. It
// takes eight at a time: most of a prompt goes through here.
func plainBytes(b []byte) (n int) {
	for ; len(b)-n >= 8; n += 8 {
		if special := specials(binary.LittleEndian.Uint64(b[n:])); special != 0 {
			return n + bits.TrailingZeros64(special)/8
		}
	}
	for n < len(b) && b[n] != '"' && b[n] != '\\' {
		n++
	}
	return n
}

// specials is not 0 if a byte of the word is a quote or a backslash. The lowest bit
// set is then the top one of the first that is.
func specials(word uint64) uint64 {
	const ones, tops = 0x0101010101010101, 0x8080808080808080
	quote, escape := word^ones*'"', word^ones*'\\'
	return ((quote-ones)&^quote | (escape-ones)&^escape) & tops
}

// inEscape reads a byte of an escape sequence, behind its backslash.
func (s *bodyID) inEscape(c byte) {
	switch {
	case s.keep < 0: // nothing but the length of \" and \\ matters
	case s.digits > 0:
		digit := json.Hex(c)
		if digit < 0 {
			s.state = scanDone
			return
		}
		s.code = s.code<<4 | rune(digit)
		if s.digits--; s.digits > 0 {
			return
		}
		s.codePoint()
	case c == 'u':
		s.digits, s.code = 4, 0
		return
	default:
		s.unpaired()
		decoded := json.Unescaped(c)
		if decoded == 0 {
			s.state = scanDone
			return
		}
		s.add(decoded)
	}
	s.state -= scanKeyEscape - scanInKey
}

// codePoint adds what \u has spelled, unless that may be the first half of a pair.
func (s *bodyID) codePoint() {
	if s.half != 0 {
		if r := utf16.DecodeRune(s.half, s.code); r != utf8.RuneError {
			s.half = 0
			s.addRune(r)
			return
		}
		s.unpaired()
	}
	if utf16.IsSurrogate(s.code) {
		s.half = s.code
		return
	}
	s.addRune(s.code)
}

// unpaired ends a pair of surrogates whose second half did not come.
func (s *bodyID) unpaired() {
	if s.half != 0 {
		s.addRune(utf8.RuneError)
		s.half = 0
	}
}

func (s *bodyID) addRune(r rune) {
	var b [utf8.UTFMax]byte
	for _, c := range b[:utf8.EncodeRune(b[:], r)] {
		s.add(c)
	}
}
