package hostsim

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"slices"
	"strings"
	"sync"
)

// redaction replaces the values of some headers in a recording by letters and digits drawn at random, of the same length,
// the same for the same value, so that a replay reads and passes on one and the same stand-in. A nil one changes nothing.
//
// What stays of a value is its shape: an authentication scheme, the names of cookies, and everything that is neither letter
// nor digit. What a plugin derives from the value, such as a hash, cannot be known and stays.
type redaction struct {
	names []string // in lower case
	key   [32]byte

	mu    sync.Mutex
	known [maxSecrets]secret
	next  int
}

// secret is a header value, or a word of one, that is replaced wherever else it appears.
type secret struct {
	value, standIn []byte
	whole          bool
}

const (
	maxSecrets = 256 // the last ones: a recorder's memory is bounded
	minSecret  = 8   // shorter ones are replaced in headers only, for they would hit unrelated text
)

func newRedaction(names []string) *redaction {
	if len(names) == 0 {
		return nil
	}
	r := &redaction{}
	for _, name := range names {
		r.names = append(r.names, strings.ToLower(name))
	}
	_, _ = rand.Read(r.key[:]) // never fails
	return r
}

// headers is h with its secrets replaced.
func (r *redaction) headers(h Headers) Headers {
	if r == nil {
		return h
	}
	out := h.Clone()
	for i := range out { // all secrets first: another header may repeat one
		if r.hides(out[i][0]) {
			out[i][1] = string(r.standIn([]byte(out[i][1])))
		}
	}
	for i := range out {
		if !r.hides(out[i][0]) {
			out[i][1] = string(r.text([]byte(out[i][1])))
		}
	}
	return out
}

func (r *redaction) hides(name string) bool { return slices.Contains(r.names, strings.ToLower(name)) }

// headerName is the header that a host call is about, where that is to be hidden.
func (r *redaction) headerName(v *vm, params []param, a []uint64) string {
	if r == nil {
		return ""
	}
	for i := range params {
		p := &params[i]
		if p.name == "key" && params[0].name == "map" || p.name == "path" {
			name, _ := v.readArg(a[p.at], a[p.at+1])
			name = name[bytes.LastIndexByte(name, 0)+1:]
			if r.hides(string(name)) {
				return string(name)
			}
		}
	}
	return ""
}

// value is what stands for data where it is the value of the header name, which may be empty.
func (r *redaction) value(name string, data []byte) []byte {
	if r != nil && name != "" {
		return r.standIn(data)
	}
	return r.text(data)
}

// text replaces known secrets.
func (r *redaction) text(data []byte) []byte {
	if r == nil || len(data) < minSecret {
		return data
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, whole := range []bool{true, false} { // a whole value first: its words are a part of it
		for _, s := range r.known {
			if s.value != nil && s.whole == whole && bytes.Contains(data, s.value) {
				data = bytes.ReplaceAll(data, s.value, s.standIn)
			}
		}
	}
	return data
}

// standIn replaces a whole value, word by word, and remembers it and its words.
func (r *redaction) standIn(value []byte) []byte {
	out := make([]byte, 0, len(value))
	for i := 0; i < len(value); {
		end := i
		for end < len(value) && inWord(value[end]) {
			end++
		}
		if end == i {
			out = append(out, value[i])
			i++
			continue
		}
		word, rest := value[i:end], value[end:]
		scheme := i == 0 && len(rest) > 1 && rest[0] == ' '
		cookieName := len(rest) > 1 && rest[0] == '=' && inWord(rest[1])
		if !scheme && !cookieName {
			word = r.wordFor(word)
		}
		out, i = append(out, word...), end
	}
	r.remember(value, out, true)
	return out
}

func inWord(c byte) bool {
	return '0' <= c && c <= '9' || 'A' <= c && c <= 'Z' || 'a' <= c && c <= 'z' || c >= 0x80 || strings.IndexByte("-._~+/", c) >= 0
}

// wordFor draws the stand-in for a word.
func (r *redaction) wordFor(word []byte) []byte {
	out := slices.Clone(word)
	var block []byte
	for i, c := range word {
		if i%sha256.Size == 0 {
			mac := hmac.New(sha256.New, r.key[:])
			mac.Write(word)
			mac.Write(block)
			block = mac.Sum(nil)
		}
		n := block[i%sha256.Size]
		switch {
		case '0' <= c && c <= '9':
			out[i] = '0' + n%10
		case 'A' <= c && c <= 'Z':
			out[i] = 'A' + n%26
		case 'a' <= c && c <= 'z':
			out[i] = 'a' + n%26
		case c >= 0x80:
			out[i] = 'x'
		}
	}
	r.remember(word, out, false)
	return out
}

func (r *redaction) remember(value, standIn []byte, whole bool) {
	if len(value) < minSecret {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.known {
		if bytes.Equal(s.value, value) || bytes.Equal(s.standIn, value) {
			return
		}
	}
	r.known[r.next] = secret{slices.Clone(value), slices.Clone(standIn), whole}
	r.next = (r.next + 1) % maxSecrets
}
