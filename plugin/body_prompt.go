package plugin

import (
	"encoding/binary"
	"math/bits"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// bodyPrompt finds the prompt in the JSON body of a model request that comes in
// pieces, and takes the hashes of its prefixes on the way: each byte is looked at
// once and none is kept.
//
// The prompt is the text, as it is spelled, of the first member at the top that is
// called messages and is a list (chat), or is called prompt or input and is a list or
// a string, without its quotes (completions, responses, embeddings). What stands
// before or behind it, the model, sampling parameters, tools, has no part in it. Two
// clients that spell the same messages in two ways have two prompts; one client's are
// comparable. Of a body that ends early the prompt is what came of it.
//
// It trusts the body to be JSON: of anything else it finds no prompt or a wrong one,
// which costs a cache miss.
type bodyPrompt struct {
	policy.Prompt
	state promptState
	depth int // of open objects and lists, 1 at the top
	// key is the current member's as far as it may matter, keySize its bytes.
	key     [maxPromptKey]byte
	keySize int
	taking  bool // the current value is the prompt
}

// maxPromptKey is longer than any key of a prompt.
const maxPromptKey = len("messages") + 1

// promptState says what the next byte belongs to.
type promptState uint8

const (
	promptStart promptState = iota // the body
	promptNext                     // a key at the top
	promptInKey
	promptKeyEscape // behind a backslash
	promptColon
	promptValue
	promptInWord // a number, true, false or null
	promptInside // an object or a list at the top
	promptInString
	promptStringEscape
	promptDone
)

// reset begins a new body. All who share an index use one seed.
func (s *bodyPrompt) reset(seed uint64) {
	s.Prompt.Reset(seed)
	s.state, s.depth, s.taking = promptStart, 0, false
}

// done reports that more of the body changes nothing.
func (s *bodyPrompt) done() bool { return s.state == promptDone }

// feed reads the next piece of the body. Cost: O(len(b)), no allocation.
func (s *bodyPrompt) feed(b []byte) {
	from := 0 // where the prompt begins in b, while taking
	for i := 0; i < len(b) && s.state != promptDone; i++ {
		// Nearly all of a body is passed over here.
		switch n := 0; s.state {
		case promptInString:
			n, s.state = passString(b[i:])
			i += n
		case promptInKey:
			n = plainBytes(b[i:])
			s.addKey(b[i : i+n])
			i += n
		case promptInside:
			for i < len(b) && b[i] != '"' && b[i]|' ' != '{' && b[i]|' ' != '}' { // and so [ and ]
				i++
			}
		}
		if i == len(b) {
			break
		}
		was := s.taking
		s.step(b[i])
		switch {
		case s.taking && !was:
			if from = i; b[i] == '"' {
				from++
			}
		case s.taking && s.state == promptDone:
			end := i
			if b[i] == ']' {
				end++
			}
			s.Write(b[from:end])
		}
	}
	if s.taking && s.state != promptDone && from < len(b) {
		s.Write(b[from:])
	}
}

// passString returns the offset of the quote that ends the string of which b is a
// part, or len(b) if it goes on, and what the byte there belongs to.
func passString(b []byte) (int, promptState) {
	n := 0
	for n < len(b) {
		if len(b)-n >= 8 {
			special := specials(binary.LittleEndian.Uint64(b[n:]))
			if special == 0 {
				n += 8
				continue
			}
			n += bits.TrailingZeros64(special) / 8
		}
		switch b[n] {
		case '"':
			return n, promptInString
		case '\\':
			n++
			if n == len(b) {
				return n, promptStringEscape
			}
		}
		n++
	}
	return n, promptInString
}

func (s *bodyPrompt) addKey(b []byte) {
	copy(s.key[min(s.keySize, maxPromptKey):], b)
	s.keySize += len(b)
}

// step reads a byte that is no plain part of a string.
func (s *bodyPrompt) step(c byte) {
	switch s.state {
	case promptKeyEscape:
		s.state = promptInKey
	case promptStringEscape:
		s.state = promptInString
	case promptInKey, promptInString:
		s.inString(c)
	case promptInside:
		s.inside(c)
	default:
		s.top(c)
	}
}

// inString reads a quote or a backslash.
func (s *bodyPrompt) inString(c byte) {
	switch {
	case c == '\\' && s.state == promptInKey:
		s.state, s.keySize = promptKeyEscape, maxPromptKey // no key of a prompt needs one
	case c == '\\':
		s.state = promptStringEscape
	case s.state == promptInKey:
		s.state = promptColon
	case s.depth > 1:
		s.state = promptInside
	default:
		s.ended()
	}
}

// inside reads a byte of an object or list at the top, outside of strings.
func (s *bodyPrompt) inside(c byte) {
	switch c {
	case '"':
		s.state = promptInString
	case '{', '[':
		s.depth++
	case '}', ']':
		if s.depth--; s.depth == 1 {
			s.ended()
		}
	}
}

// top reads a byte between the values at the top, or of a word there.
func (s *bodyPrompt) top(c byte) {
	switch {
	case c == ' ' || c == '\n' || c == '\t' || c == '\r':
	case s.state == promptStart && c == '{':
		s.state, s.depth = promptNext, 1
	case s.state == promptNext && c == '"':
		s.state, s.keySize = promptInKey, 0
	case (s.state == promptNext || s.state == promptInWord) && c == ',':
		s.state = promptNext
	case s.state == promptColon && c == ':':
		s.state = promptValue
	case s.state == promptValue:
		s.value(c)
	case s.state == promptInWord && c != '}':
	default:
		s.state = promptDone
	}
}

// value begins a value at the top with its first byte.
func (s *bodyPrompt) value(c byte) {
	key := string(s.key[:min(s.keySize, maxPromptKey)])
	switch c {
	case '"':
		s.state = promptInString
		s.taking = key == "prompt" || key == "input"
	case '[':
		s.state, s.depth = promptInside, 2
		s.taking = key == "messages" || key == "prompt" || key == "input"
	case '{':
		s.state, s.depth = promptInside, 2
	default:
		s.state = promptInWord
	}
}

// ended goes on behind a value at the top.
func (s *bodyPrompt) ended() {
	if s.state = promptNext; s.taking {
		s.state = promptDone
	}
}
