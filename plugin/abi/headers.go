package abi

import (
	"encoding/binary"
	"unsafe"
)

// Headers reads a header map as the host hands it over, in order, pseudo headers
// included. The zero value is an empty map.
type Headers struct {
	data  []byte
	left  int
	sizes int // where the next pair's sizes are
	at    int // where its name begins
}

// newHeaders reads the serialised form of proxy-wasm: a count, the sizes of all
// names and values, then these, each ended by a zero byte; little-endian.
func newHeaders(data []byte) Headers {
	if len(data) < 4 {
		return Headers{}
	}
	n := int(binary.LittleEndian.Uint32(data))
	if n > (len(data)-4)/8 {
		return Headers{}
	}
	return Headers{data: data, left: n, sizes: 4, at: 4 + 8*n}
}

// Next returns the next name, in lower case, and value: bytes of any kind, valid
// until the callback ends. ok is false when there are no more.
func (h *Headers) Next() (name, value string, ok bool) {
	if h.left == 0 {
		return "", "", false
	}
	n := int(binary.LittleEndian.Uint32(h.data[h.sizes:]))
	v := int(binary.LittleEndian.Uint32(h.data[h.sizes+4:]))
	if n+v+2 > len(h.data)-h.at {
		h.left = 0
		return "", "", false
	}
	name = view(h.data[h.at : h.at+n])
	value = view(h.data[h.at+n+1 : h.at+n+1+v])
	h.left, h.sizes, h.at = h.left-1, h.sizes+8, h.at+n+v+2
	return name, value, true
}

func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
