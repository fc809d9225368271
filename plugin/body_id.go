package plugin

import (
	"math/bits"

	"github.com/pinwheel-proxy/pinwheel/plugin/json"
)

// bodyID finds the session id in a JSON text that comes in pieces. It looks at
// each byte once and keeps those of the id alone, so that a request which waits
// for its body costs no memory of the body's size. For a whole and valid text it
// finds what gjson finds; where the text ends early, gjson takes the beginning of
// a value for the value.
//
// Of the paths, the first in order that leads to a string that is not empty, or
// to a number, has the id: the string decoded, the number as it is spelled. Of
// several members with one key the first counts, whatever it is. A value counts
// once its end was seen. What is no JSON ends the search.
type bodyID struct {
	paths []bodyPath
	most  int // bytes of an id that are kept

	state scanState
	depth int // of open objects and lists
	// lists has bit d set if what is open at depth d is a list.
	lists [maxBodyDepth/64 + 1]uint64
	// live are the paths that lead into what is open at a depth, a bit each, and
	// index is the position in it if it is a list. No path leads deeper.
	live  [maxPathParts + 1]uint8
	index [maxPathParts + 1]int
	// fits are the live paths that the current key or position fits.
	fits uint8
	// met are the paths that have led to a value.
	met uint8
	// text is the current key or value as far as it is of interest, decoded.
	text []byte
	keep int // bytes of text to keep
	// digits of \u are to come, code has the others, and half is a surrogate that
	// waits for its second half, 0 if none does.
	digits uint8
	code   rune
	half   rune
	id     []byte
	by     int // the path of id, len(paths) if there is none
}

// maxBodyDepth bounds the nesting of a body. A deeper one has no id.
const maxBodyDepth = 255

// scanState says what the next byte belongs to.
type scanState uint8

const (
	scanValue    scanState = iota // a value begins
	scanFirst                     // a value begins, or the list ends
	scanFirstKey                  // a key begins, or the object ends
	scanKey                       // a key begins
	scanColon                     // a colon
	scanNext                      // a comma, or the end of what is open
	scanInKey
	scanInString
	scanKeyEscape // behind a backslash
	scanStringEscape
	scanInWord // a number, true, false or null
	scanDone
)

// reset begins a new text. paths are at most maxBodyPaths; an id longer than most
// bytes is cut to most+1.
func (s *bodyID) reset(paths []bodyPath, most int) {
	s.paths, s.most = paths, most
	s.state, s.depth, s.met, s.fits = scanValue, 0, 0, 0
	s.id, s.by = s.id[:0], len(paths)
	if len(paths) == 0 {
		s.state = scanDone
	}
}

// found returns the id, empty if there is none so far. Valid until reset.
func (s *bodyID) found() []byte { return s.id }

// done reports that more of the text changes nothing.
func (s *bodyID) done() bool { return s.state == scanDone }

// feed reads the next piece of the text. Cost: O(len(b)).
func (s *bodyID) feed(b []byte) {
	for i := 0; i < len(b); {
		switch s.state {
		case scanDone:
			return
		case scanInKey, scanInString:
			i += s.inString(b[i:])
		case scanKeyEscape, scanStringEscape:
			s.inEscape(b[i])
			i++
		case scanInWord:
			i += s.inWord(b[i:])
		default:
			if c := b[i]; c != ' ' && c != '\n' && c != '\t' && c != '\r' {
				s.structure(c)
			}
			i++
		}
	}
}

// structure reads a byte between strings, numbers and words.
func (s *bodyID) structure(c byte) {
	switch {
	case s.state == scanColon:
		s.expect(c == ':', scanValue)
	case s.state == scanNext && c == ',':
		if s.state = scanKey; s.inList() {
			s.state = scanValue
			s.position(1)
		}
	case (s.state == scanNext || s.state == scanFirst) && c == ']' && s.inList(),
		(s.state == scanNext || s.state == scanFirstKey) && c == '}' && !s.inList():
		s.depth--
		s.ended()
	case s.state == scanFirstKey || s.state == scanKey:
		if s.expect(c == '"', scanInKey); s.depth <= maxPathParts && s.live[s.depth] != 0 {
			s.begin(maxPartBytes + 1)
		} else {
			s.begin(-1)
		}
	case s.state == scanValue || s.state == scanFirst:
		s.value(c)
	default:
		s.state = scanDone
	}
}

func (s *bodyID) expect(ok bool, next scanState) {
	if s.state = next; !ok {
		s.state = scanDone
	}
}

func (s *bodyID) inList() bool { return s.lists[s.depth/64]>>(s.depth%64)&1 != 0 }

// value begins a value with its first byte.
func (s *bodyID) value(c byte) {
	if s.depth == 0 { // of the whole text, which no path means
		s.fits = 0
	}
	switch {
	case c == '{' || c == '[':
		s.open(c == '[')
	case c == '"':
		s.state = scanInString
		s.begin(s.interest())
	case c == '-' || '0' <= c && c <= '9':
		s.state = scanInWord
		s.begin(s.interest())
		s.add(c)
	default:
		s.expect(c == 't' || c == 'f' || c == 'n', scanInWord)
		s.begin(-1)
	}
}

// open begins an object or a list.
func (s *bodyID) open(list bool) {
	live := uint8(0xff) >> (8 - len(s.paths))
	if s.depth > 0 {
		live = s.fits &^ s.ends()
		s.settle(false)
	}
	if s.state == scanDone {
		return
	}
	if s.depth++; s.depth > maxBodyDepth {
		s.state = scanDone
		return
	}
	if s.depth <= maxPathParts {
		s.live[s.depth], s.index[s.depth] = live, 0
	}
	if s.state = scanFirstKey; list {
		s.state = scanFirst
		s.lists[s.depth/64] |= 1 << (s.depth % 64)
		s.position(0)
	} else {
		s.lists[s.depth/64] &^= 1 << (s.depth % 64)
	}
}

// position moves on by n in the current list.
func (s *bodyID) position(n int) {
	if s.fits = 0; s.depth > maxPathParts || s.live[s.depth] == 0 {
		return
	}
	s.index[s.depth] += n
	for i, path := range s.paths {
		if s.live[s.depth]>>i&1 != 0 && path[s.depth-1].index == s.index[s.depth] {
			s.fits |= 1 << i
		}
	}
}

// ends are the paths of fits that end here, at the current value.
func (s *bodyID) ends() (ends uint8) {
	if s.fits == 0 {
		return 0
	}
	for i, path := range s.paths {
		if len(path) == s.depth {
			ends |= 1 << i
		}
	}
	return ends & s.fits
}

// interest is the number of bytes to keep of a string or number, -1 for none: one
// path ends here that has led to nothing yet and goes before the one of the id.
func (s *bodyID) interest() int {
	if ends := s.ends() &^ s.met; ends != 0 && first(ends) < s.by {
		return s.most + 1
	}
	return -1
}

// settle notes that the paths which end at the current value have led to it, and
// takes it as the id if it is one.
func (s *bodyID) settle(isID bool) {
	ends := s.ends() &^ s.met
	if ends == 0 {
		return
	}
	s.met |= ends
	if by := first(ends); isID && by < s.by && len(s.text) > 0 {
		s.by = by
		s.id, s.text = s.text, s.id
	}
	if before := uint8(1)<<s.by - 1; s.met&before == before {
		s.state = scanDone // nothing that may come goes before the id
	}
}

// ended goes on behind a value.
func (s *bodyID) ended() {
	if s.state == scanDone {
		return
	}
	if s.state = scanNext; s.depth == 0 {
		s.state = scanDone
	}
}

// begin starts a string, number or word of which that many bytes are kept; -1
// means that it is of no interest.
func (s *bodyID) begin(keep int) {
	s.keep = keep
	s.text = s.text[:0]
	s.digits, s.half = 0, 0
}

func (s *bodyID) add(c byte) {
	if len(s.text) < s.keep {
		s.text = append(s.text, c)
	}
}

func first(set uint8) int { return bits.TrailingZeros8(set) }

// matchKey notes which paths the key fits.
func (s *bodyID) matchKey() {
	if s.fits = 0; s.keep < 0 {
		return
	}
	for i, path := range s.paths {
		if s.live[s.depth]>>i&1 != 0 && path[s.depth-1].key == string(s.text) {
			s.fits |= 1 << i
		}
	}
}

// inWord reads on in a number, true, false or null. What follows it ends it.
func (s *bodyID) inWord(b []byte) int {
	for i, c := range b {
		switch {
		case '0' <= c && c <= '9', 'a' <= c && c <= 'z', c == '.', c == '+', c == '-', c == 'E':
			s.add(c)
		default:
			cut := len(s.text) == s.keep
			s.settle(s.keep >= 0 && (cut || json.Valid(s.text)))
			s.ended()
			return i
		}
	}
	return len(b)
}
