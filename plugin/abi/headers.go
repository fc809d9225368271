package abi

import (
	"encoding/binary"
	"unsafe"
)

// Headers reads a header map as the host hands it over, in order, pseudo headers
// included. The zero value is an empty map.
type Headers struct {
	data  []byte
	left  int // headers not sifted yet
	sizes int // where the sizes of the first of them are
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

// Names is a set of header names to look for. The zero value is empty.
type Names struct {
	buckets [64]*name // by bucketOf
	count   int
	found   []Found // scratch
}

type name struct {
	text   string
	number int
	next   *name // in the same bucket
}

// bucketOf tells names apart by their length and their last four bytes, which end is.
// It needs no branch, and of 64 buckets one for each name that is looked for.
func bucketOf(length, end uint32) uint32 { return (end + length) * 0x9e3779b1 >> 26 }

// shortNames is the bucket of names of less than four bytes.
const shortNames = 0

// NamesOf returns the set of the names, numbered from 0 in the order of the list.
func NamesOf(names ...string) *Names {
	n := &Names{}
	for _, name := range names {
		n.Add(name)
	}
	return n
}

// Add puts a name, in lower case, into the set and returns its number: names are
// numbered from 0, in the order in which they come.
func (n *Names) Add(text string) int {
	bucket := uint32(shortNames)
	if len(text) >= 4 {
		bucket = bucketOf(uint32(len(text)), binary.LittleEndian.Uint32([]byte(text[len(text)-4:])))
	}
	for known := n.buckets[bucket]; known != nil; known = known.next {
		if known.text == text {
			return known.number
		}
	}
	n.buckets[bucket] = &name{text, n.count, n.buckets[bucket]}
	n.count++
	return n.count - 1
}

// Found is a header whose name is in a set.
type Found struct {
	// Number is the name's.
	Number uint32
	// at and size are the value's.
	at, size uint32
}

// Find returns the headers whose names are in the set, in order. They are valid until
// the set is asked again.
func (n *Names) Find(in Headers) []Found {
	if n.found == nil {
		n.found = make([]Found, 16)
	}
	count := sift(&in, &n.buckets, n.found)
	for in.left > 0 {
		n.found = append(n.found, make([]Found, len(n.found))...)
		count += sift(&in, &n.buckets, n.found[count:])
	}
	return n.found[:count]
}

// Value returns the value of a header that was found, bytes of any kind, valid until
// the callback ends.
func (h *Headers) Value(f Found) string { return view(h.data[f.at : f.at+f.size]) }

// view is what strings.Builder does; unsafe.String checks what is known here.
func view(b []byte) string { return *(*string)(unsafe.Pointer(&b)) }
