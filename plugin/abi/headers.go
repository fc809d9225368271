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

// Names is a set of header names to look for. The zero value is empty.
type Names struct {
	// buckets holds the names by bucketOf; bit i of filled says that there are some in
	// bucket i, or that it has to be looked into anyway.
	buckets [64][]numberedName
	filled  uint64
	count   int
}

type numberedName struct {
	text   string
	number int
}

// shortNames is the bucket of names of less than four bytes.
const shortNames = 0

// bucketOf tells names apart by their length and their last four bytes, which end is.
// It needs no branch, and of 64 buckets one for each name that is looked for.
func bucketOf(length, end uint32) uint32 { return (end + length) * 0x9e3779b1 >> 26 }

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
func (n *Names) Add(name string) int {
	bucket := uint32(shortNames)
	if len(name) >= 4 {
		bucket = bucketOf(uint32(len(name)), binary.LittleEndian.Uint32([]byte(name[len(name)-4:])))
	}
	for _, known := range n.buckets[bucket] {
		if known.text == name {
			return known.number
		}
	}
	n.buckets[bucket] = append(n.buckets[bucket], numberedName{name, n.count})
	n.filled |= 1 << bucket
	n.count++
	return n.count - 1
}

// Next returns the next header whose name is in the set: the name's number and the
// value, bytes of any kind, valid until the callback ends. ok is false when there are
// no more.
func (h *Headers) Next(of *Names) (number int, value string, ok bool) {
	for h.left > 0 {
		bucket := h.pass(of.filled)
		if h.left == 0 {
			break
		}
		size := unsafe.Pointer(&h.data[h.sizes])
		n := int(*(*uint32)(size))
		name, split := h.at, h.at+n
		h.at = split + int(*(*uint32)(unsafe.Add(size, 4))) + 2
		h.left--
		h.sizes += 8
		if h.at > len(h.data) {
			h.left = 0
			break
		}
		known := of.buckets[bucket&63]
		for i := range known {
			if k := &known[i]; n == len(k.text) && n > 0 && same(&h.data[name], k.text) {
				return k.number, view(h.data[split+1 : h.at-1]), true
			}
		}
	}
	return 0, "", false
}

// pass passes over headers whose buckets are empty and returns the bucket of the one
// after them. It calls nothing and has few variables: official Go makes of each turn of a
// loop a jump by table, at which V8 moves all variables of the function about. It reads
// words where they stand, little-endian, as wasm does (WebAssembly Core 4.4.7) and the
// processors that tests run on: encoding/binary reads byte by byte on wasm.
func (h *Headers) pass(filled uint64) (bucket uint32) {
	left, at := h.left, h.at
	data, sizes := unsafe.Pointer(&h.data[0]), unsafe.Pointer(&h.data[h.sizes])
	for {
		n := *(*uint32)(sizes)
		end := at + int(n)
		if end > len(h.data) {
			left = 0
			break
		}
		// Sizes stand before all names: there are four bytes before the end of any.
		if bucket = bucketOf(n, *(*uint32)(unsafe.Add(data, end-4))); n < 4 {
			bucket = shortNames
		}
		if filled>>bucket&1 != 0 {
			break
		}
		at = end + int(*(*uint32)(unsafe.Add(sizes, 4))) + 2
		if left--; left == 0 {
			break
		}
		sizes = unsafe.Add(sizes, 8)
	}
	h.sizes += 8 * (h.left - left)
	h.left, h.at = left, at
	return bucket
}

// same reports whether what begins at p is the text, which is not empty: by words,
// the last of which may begin within the one before.
func same(p *byte, text string) bool {
	a, b, n := unsafe.Pointer(p), unsafe.Pointer(unsafe.StringData(text)), len(text)
	switch {
	case n < 4:
		for i := range n {
			if *(*byte)(unsafe.Add(a, i)) != text[i] {
				return false
			}
		}
		return true
	case n < 8:
		return *(*uint32)(a) == *(*uint32)(b) && *(*uint32)(unsafe.Add(a, n-4)) == *(*uint32)(unsafe.Add(b, n-4))
	}
	for i := 0; i < n-8; i += 8 {
		if *(*uint64)(unsafe.Add(a, i)) != *(*uint64)(unsafe.Add(b, i)) {
			return false
		}
	}
	return *(*uint64)(unsafe.Add(a, n-8)) == *(*uint64)(unsafe.Add(b, n-8))
}

func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }
