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

// Lengths is a set of lengths of header names. Lengths from 63 on are one.
type Lengths uint64

// With returns the set with the length of name in it.
func (l Lengths) With(name string) Lengths { return l | 1<<min(len(name), 63) }

func (l Lengths) has(n uint32) bool { return l>>min(n, 63)&1 != 0 }

// Next returns the next header whose name has a length of the set: its name, in
// lower case, and its value, bytes of any kind. Both are valid until the callback
// ends. Most headers of a request are passed over by their length alone. ok is
// false when there are no more.
func (h *Headers) Next(of Lengths) (name, value string, ok bool) {
	data, sizes, at := h.data, h.sizes, h.at // in memory, each step would be a store
	for left := h.left; left > 0; {
		left--
		n := binary.LittleEndian.Uint32(data[sizes:])
		begin, split := at, at+int(n)
		sizes, at = sizes+8, split+int(binary.LittleEndian.Uint32(data[sizes+4:]))+2
		if at > len(data) {
			break
		}
		if of.has(n) {
			h.left, h.sizes, h.at = left, sizes, at
			return view(data[begin:split]), view(data[split+1 : at-1]), true
		}
	}
	h.left = 0
	return "", "", false
}

func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
