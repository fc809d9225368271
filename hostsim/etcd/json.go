package etcd

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"math"
	"strconv"
)

// A request is read as etcd's gateway reads it, by golang/protobuf's jsonpb on top of encoding/json: its whole syntax first,
// then the fields that the message knows. encoding/json itself would find fields whatever their case.

// maxDepth is how deep values may be nested. Source: encoding/json.
const maxDepth = 10000

// skipSpace returns the index of the first byte at or after i that is not white space.
func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// skipValue returns the index behind the JSON value that begins at i, or false if no value of correct syntax does.
func skipValue(b []byte, i, depth int) (int, bool) {
	if i >= len(b) {
		return i, false
	}
	switch c := b[i]; {
	case c == '"':
		return skipString(b, i)
	case c == '{' || c == '[':
		return skipMembers(b, i, depth)
	case c == '-' || c >= '0' && c <= '9':
		return skipNumber(b, i)
	}
	for _, word := range []string{"null", "true", "false"} {
		if len(b)-i >= len(word) && string(b[i:i+len(word)]) == word {
			return i + len(word), true
		}
	}
	return i, false
}

func skipMembers(b []byte, i, depth int) (int, bool) {
	if depth > maxDepth {
		return i, false
	}
	object, end := b[i] == '{', b[i]+2
	i = skipSpace(b, i+1)
	if i < len(b) && b[i] == end {
		return i + 1, true
	}
	for ok := false; ; i = skipSpace(b, i+1) {
		if object {
			if i >= len(b) || b[i] != '"' {
				return i, false
			}
			if i, ok = skipString(b, i); !ok {
				return i, false
			}
			if i = skipSpace(b, i); i >= len(b) || b[i] != ':' {
				return i, false
			}
			i = skipSpace(b, i+1)
		}
		if i, ok = skipValue(b, i, depth+1); !ok {
			return i, false
		}
		switch i = skipSpace(b, i); {
		case i < len(b) && b[i] == end:
			return i + 1, true
		case i >= len(b) || b[i] != ',':
			return i, false
		}
	}
}

func skipString(b []byte, i int) (int, bool) {
	for i++; i < len(b); i++ {
		switch c := b[i]; {
		case c == '"':
			return i + 1, true
		case c < ' ':
			return i, false
		case c == '\\':
			if i++; i >= len(b) || bytes.IndexByte([]byte(`"\/bfnrtu`), b[i]) < 0 {
				return i, false
			}
			for digits := 4; b[i] == 'u' && digits > 0; digits-- {
				if i+digits >= len(b) || bytes.IndexByte([]byte("0123456789abcdefABCDEF"), b[i+digits]) < 0 {
					return i, false
				}
			}
		}
	}
	return i, false
}

func skipNumber(b []byte, i int) (int, bool) {
	digits := func() bool {
		from := i
		for i < len(b) && b[i] >= '0' && b[i] <= '9' {
			i++
		}
		return i > from
	}
	if b[i] == '-' {
		i++
	}
	if i < len(b) && b[i] == '0' {
		i++
	} else if !digits() {
		return i, false
	}
	if i < len(b) && b[i] == '.' {
		if i++; !digits() {
			return i, false
		}
	}
	if i < len(b) && (b[i] == 'e' || b[i] == 'E') {
		if i++; i < len(b) && (b[i] == '+' || b[i] == '-') {
			i++
		}
		if !digits() {
			return i, false
		}
	}
	return i, true
}

// cutValue cuts the first JSON value off b, as a json.Decoder does: it is empty at the end of b, and what follows is not looked
// at.
func cutValue(b []byte) (value, rest []byte, ok bool) {
	from := skipSpace(b, 0)
	if from == len(b) {
		return nil, nil, true
	}
	to, ok := skipValue(b, from, 1)
	return b[from:to], b[to:], ok
}

// field is a field's two names in a request: as in etcd's .proto files, and in camel case, which wins.
type field struct{ name, camel string }

// message is a JSON object of correct syntax, taken apart. It fails once and for all: whatever is read then is zero.
type message struct {
	values [16][]byte // by field, nil where there is none
	failed bool
}

// parseMessage reads an object or null. Of a field that comes twice the last one counts; unknown ones are ignored.
func parseMessage(m *message, raw []byte, fields []field) {
	if len(raw) == 0 || raw[0] != '{' {
		m.failed = len(raw) > 0 && raw[0] != 'n'
		return
	}
	var camels uint32
	for i := skipSpace(raw, 1); raw[i] != '}'; {
		from := i
		i, _ = skipString(raw, i)
		name := raw[from+1 : i-1]
		if bytes.IndexByte(name, '\\') >= 0 {
			var text string
			_ = json.Unmarshal(raw[from:i], &text)
			name = []byte(text)
		}
		from = skipSpace(raw, skipSpace(raw, i)+1)
		i, _ = skipValue(raw, from, 0)
		for n := range fields {
			if string(name) == fields[n].camel {
				m.values[n], camels = raw[from:i], camels|1<<n
			} else if string(name) == fields[n].name && camels>>n&1 == 0 {
				m.values[n] = raw[from:i]
			}
		}
		if i = skipSpace(raw, i); raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
	}
}

// has reports whether a field is there, if only with null.
func (m *message) has(n int) bool { return m.values[n] != nil }

// null reports whether a field is not there or null, which is the same but for the values of a compare.
func (m *message) null(n int) bool { return m.values[n] == nil || m.values[n][0] == 'n' }

// bytes reads a field of type bytes: base64 of the standard alphabet with padding, in which line ends are ignored. As
// encoding/json has it, an array of numbers will do, too.
func (m *message) bytes(n int) string {
	raw := m.values[n]
	if m.failed || m.null(n) {
		return ""
	}
	if raw[0] == '"' && bytes.IndexByte(raw, '\\') < 0 {
		var few [96]byte
		out := few[:]
		if size := base64.StdEncoding.DecodedLen(len(raw) - 2); size > len(few) {
			out = make([]byte, size)
		}
		size, err := base64.StdEncoding.Decode(out, raw[1:len(raw)-1])
		if err != nil {
			m.failed = true
			return ""
		}
		return string(out[:size])
	}
	var out []byte
	m.unmarshal(raw, &out)
	return string(out)
}

// text reads a field of type string.
func (m *message) text(n int) (s string) {
	if !m.failed && !m.null(n) {
		m.unmarshal(m.values[n], &s)
	}
	return s
}

// int64 reads a number, which may stand in quotes.
func (m *message) int64(n int) int64 {
	raw := m.values[n]
	if m.failed || m.null(n) {
		return 0
	}
	if raw[0] == '"' {
		raw = bytes.Trim(raw[1:len(raw)-1], " ") // of white space, a string's syntax has left only blanks
		if string(raw) == "null" {
			return 0
		}
		if end, ok := skipValue(raw, 0, 0); !ok || end != len(raw) {
			m.failed = true
			return 0
		}
	}
	number, err := strconv.ParseInt(string(raw), 10, 64)
	if err != nil {
		m.failed = true
	}
	return number
}

// enum reads one of names, which must be its exact bytes, or any number of 32 bits.
func (m *message) enum(n int, names ...string) int32 {
	raw := m.values[n]
	if m.failed || m.null(n) {
		return 0
	}
	if raw[0] == '"' {
		for i, name := range names {
			if string(raw[1:len(raw)-1]) == name {
				return int32(i)
			}
		}
		m.failed = true
		return 0
	}
	number := m.int64(n)
	m.failed = m.failed || number < math.MinInt32 || number > math.MaxInt32
	return int32(number)
}

// bool reads true or false.
func (m *message) bool(n int) (b bool) {
	if !m.failed && !m.null(n) {
		m.failed = m.values[n][0] != 't' && m.values[n][0] != 'f'
		b = m.values[n][0] == 't'
	}
	return b
}

// list calls each with every element of an array.
func (m *message) list(n int, each func(raw []byte)) {
	raw := m.values[n]
	if m.failed || m.null(n) {
		return
	}
	if raw[0] != '[' {
		m.failed = true
		return
	}
	for i := skipSpace(raw, 1); raw[i] != ']'; {
		from := i
		i, _ = skipValue(raw, i, 0)
		each(raw[from:i])
		if i = skipSpace(raw, i); raw[i] == ',' {
			i = skipSpace(raw, i+1)
		}
	}
}

func (m *message) unmarshal(raw []byte, to any) {
	if json.Unmarshal(raw, to) != nil {
		m.failed = true
	}
}
