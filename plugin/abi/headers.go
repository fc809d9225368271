package abi

import (
	"encoding/binary"
	"unsafe"
)

// Map is a header map of the host, by its number in the ABI.
type Map uint32

const (
	RequestHeaders  Map = 0
	ResponseHeaders Map = 2
	// HTTPCallHeaders are those of the answer that OnHTTPCallResponse tells of.
	HTTPCallHeaders Map = 6
)

// headers is a header map as the host hands it over, in order, pseudo headers included.
// The zero value is an empty map.
type headers struct {
	data  []byte
	count int // data has room for the sizes of so many
}

// read reads the serialised form of proxy-wasm: a count, the sizes of all names and
// values, then these, each ended by a zero byte; little-endian.
func (h *headers) read(data []byte) {
	h.data, h.count = data, 0
	if len(data) < 4 {
		return
	}
	if n := int(binary.LittleEndian.Uint32(data)); n <= (len(data)-4)/8 {
		h.count = n
	}
}

// header is where one stands in a map's data.
type header struct{ name, value, end int }

func (h headers) name(at header) string  { return view(h.data[at.name : at.value-1]) }
func (h headers) value(at header) string { return view(h.data[at.value:at.end]) }

// all yields all headers. What ends beyond the data ends the map.
func (h headers) all(yield func(header) bool) {
	at := 4 + 8*h.count
	for i := range h.count {
		sizes := h.data[4+8*i:]
		value := at + int(binary.LittleEndian.Uint32(sizes)) + 1
		end := value + int(binary.LittleEndian.Uint32(sizes[4:]))
		if end >= len(h.data) || !yield(header{at, value, end}) {
			return
		}
		at = end + 1
	}
}

// Names is a set of header names to look for. The zero value is empty.
type Names struct {
	buckets [64]*name // by bucketOf
	found   []found   // by number
	in      headers
}

type name struct {
	text   string
	number int
	next   *name // in the same bucket
	// tail is the text's last eight bytes, or all of them, as a little-endian number that
	// was shifted by so many bits.
	tail, shift uint64
}

// bucketOf tells names apart by their length and their last four bytes. It needs no
// branch but for shorter ones, which have one bucket, and of 64 buckets there is one for
// each name that is looked for.
func bucketOf(name string) uint32 {
	if len(name) < 4 {
		return shortNames
	}
	end := binary.LittleEndian.Uint32([]byte(name[len(name)-4:]))
	return (end + uint32(len(name))) * 0x9e3779b1 >> 26
}

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
	if known := n.number(text); known >= 0 {
		return known
	}
	bucket := &n.buckets[bucketOf(text)]
	var last [8]byte
	copy(last[max(0, 8-len(text)):], text[max(0, len(text)-8):])
	shift := 8 * uint64(max(0, 8-len(text)))
	*bucket = &name{text, len(n.found), *bucket, binary.LittleEndian.Uint64(last[:]) >> shift, shift}
	n.found = append(n.found, found{})
	return len(n.found) - 1
}

// found is what Find saw of a name: how often, and where the first value is.
type found struct{ times, at, size uint32 }

// Find looks for the names in a header map, of which it reads all in one host call: the
// host enters the VM once to ask for memory, where a call for each header would make it
// enter each time, which is what a header costs. Times, Value and Values then tell of it,
// until the callback ends. A map that the host does not give is empty; a header without
// a name is never found.
func (n *Names) Find(in Map) { n.findIn(headerMap(in)) }

func (n *Names) findIn(data []byte) {
	n.in.read(data)
	sift(&n.in, &n.buckets, n.found)
}

// Times returns how many headers had the name.
func (n *Names) Times(number int) int { return int(n.found[number].times) }

// Value returns the first value of the name, bytes of any kind; "" if there was none.
func (n *Names) Value(number int) string {
	f := &n.found[number]
	return view(n.in.data[f.at : f.at+f.size])
}

// Values returns all values of the name, in order.
func (n *Names) Values(number int) (all []string) {
	for at := range n.in.all {
		if name := n.in.name(at); name != "" && n.number(name) == number {
			all = append(all, n.in.value(at))
		}
	}
	return all
}

// number returns the number of the name, -1 if it is not in the set.
func (n *Names) number(text string) int {
	for known := n.buckets[bucketOf(text)]; known != nil; known = known.next {
		if known.text == text {
			return known.number
		}
	}
	return -1
}

// view is what strings.Builder does; unsafe.String checks what is known here.
func view(b []byte) string { return *(*string)(unsafe.Pointer(&b)) }
