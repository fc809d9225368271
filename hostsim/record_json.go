package hostsim

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"
)

// How a recording spells bytes: as a JSON string where they are UTF-8, and else as {"base64": "..."}. A header map is a list
// of [name, value] where it is serialised as the specification says, and else bytes like any other.

// appendText writes bytes.
func appendText[T ~string | ~[]byte](b []byte, data T) []byte {
	if !validUTF8(data) {
		b = append(b, `{"base64":"`...)
		b = base64.StdEncoding.AppendEncode(b, []byte(data))
		return append(b, `"}`...)
	}
	const hex = "0123456789abcdef"
	b = append(b, '"')
	start := 0
	for i := range len(data) {
		c := data[i]
		if c >= ' ' && c != '"' && c != '\\' && c != 0x7f {
			continue
		}
		b = append(b, data[start:i]...)
		start = i + 1
		switch c {
		case '"', '\\':
			b = append(b, '\\', c)
		case '\n':
			b = append(b, `\n`...)
		case '\t':
			b = append(b, `\t`...)
		default:
			b = append(b, '\\', 'u', '0', '0', hex[c>>4], hex[c&15])
		}
	}
	b = append(b, data[start:]...)
	return append(b, '"')
}

func validUTF8[T ~string | ~[]byte](data T) bool {
	for i := range len(data) {
		if data[i] >= utf8.RuneSelf {
			return utf8.Valid([]byte(data))
		}
	}
	return true
}

// appendHeaders writes a header map.
func appendHeaders(b []byte, h Headers) []byte {
	b = append(b, '[')
	for i := range h {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, '[')
		b = appendText(b, h[i][0])
		b = append(b, ',')
		b = appendText(b, h[i][1])
		b = append(b, ']')
	}
	return append(b, ']')
}

// splitPairs reads a serialised map as it stands; ok is false unless it is spelled exactly as encodePairs would.
func splitPairs(data []byte) (h Headers, ok bool) {
	if len(data) < 4 {
		return nil, false
	}
	n := binary.LittleEndian.Uint32(data)
	if uint64(len(data)) < 4+8*uint64(n) {
		return nil, false
	}
	sizes, rest := data[4:4+8*n], data[4+8*n:]
	h = make(Headers, 0, n)
	for i := range n {
		var name, value string
		var ok1, ok2 bool
		name, rest, ok1 = cutPair(rest, binary.LittleEndian.Uint32(sizes[8*i:]))
		value, rest, ok2 = cutPair(rest, binary.LittleEndian.Uint32(sizes[8*i+4:]))
		if !ok1 || !ok2 {
			return nil, false
		}
		h = append(h, [2]string{name, value})
	}
	return h, len(rest) == 0
}

var errNotBytes = errors.New(`neither a string, {"base64": ...} nor a list of pairs`)

// recordedBytes undoes appendText and appendHeaders.
func recordedBytes(raw json.RawMessage) ([]byte, error) {
	if len(raw) == 0 {
		return nil, errNotBytes
	}
	switch raw[0] {
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return []byte(s), err
	case '{':
		var v struct {
			Base64 *[]byte `json:"base64"`
		}
		if err := json.Unmarshal(raw, &v); err != nil || v.Base64 == nil {
			return nil, errNotBytes
		}
		return *v.Base64, nil
	case '[':
		h, err := recordedHeaders(raw)
		return encodePairs(h), err
	}
	return nil, errNotBytes
}

func recordedHeaders(raw json.RawMessage) (Headers, error) {
	var pairs [][]json.RawMessage
	if err := json.Unmarshal(raw, &pairs); err != nil {
		return nil, errNotBytes
	}
	h := make(Headers, 0, len(pairs))
	for _, p := range pairs {
		if len(p) != 2 {
			return nil, fmt.Errorf("a header of %d parts, not name and value", len(p))
		}
		name, err := recordedBytes(p[0])
		if err != nil {
			return nil, err
		}
		value, err := recordedBytes(p[1])
		if err != nil {
			return nil, err
		}
		h = append(h, [2]string{string(name), string(value)})
	}
	return h, nil
}

// appendStatus writes a status by its name, or as a number where it has none.
func appendStatus(b []byte, st uint32) []byte {
	if int(st) < len(statusNames) {
		return append(append(append(b, '"'), statusNames[st]...), '"')
	}
	return strconv.AppendUint(b, uint64(st), 10)
}

// recordedStatus undoes appendStatus.
func recordedStatus(raw json.RawMessage) (uint32, error) {
	if n, err := strconv.ParseUint(string(raw), 10, 32); err == nil {
		return uint32(n), nil
	}
	for st, name := range statusNames {
		if len(raw) == len(name)+2 && string(raw[1:len(raw)-1]) == name {
			return uint32(st), nil
		}
	}
	return 0, fmt.Errorf("no such status: %s", clip(string(raw)))
}

// clip shortens text for an error message.
func clip(s string) string {
	const most = 400
	if len(s) <= most {
		return s
	}
	return s[:most] + fmt.Sprintf("... (%d bytes)", len(s))
}
