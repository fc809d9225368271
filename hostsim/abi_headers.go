package hostsim

import (
	"encoding/binary"
	"strings"
)

// Functions on header maps. Source: Envoy, source/extensions/common/wasm/context.cc, getMap and getConstMap.

// maxPairs and maxPairsSize bound what a module may hand over as a whole map. Source: proxy-wasm-cpp-host,
// include/proxy-wasm/limits.h.
const (
	maxPairs     = 1024
	maxPairsSize = 1 << 20
)

// headerMap finds the map for a host call. write asks for one that the module may change.
func (v *vm) headerMap(kind uint64, write bool) (*Headers, Status) {
	if MapKind(uint32(kind)) > mapKindMax {
		return nil, StatusBadArgument
	}
	if m := v.callMap(MapKind(uint32(kind))); m != nil && !write {
		return m, StatusOK
	}
	s := v.stream()
	if s == nil {
		return nil, StatusBadArgument
	}
	if m := s.openMap(MapKind(uint32(kind)), write); m != nil {
		return m, StatusOK
	}
	if s.logging && !write {
		// While the access log is written, a map may be missing for good reason: no response ever came.
		return nil, StatusNotFound
	}
	return nil, StatusBadArgument
}

// callMap finds a map of the answer to a call-out, which only the callback about it may read.
func (v *vm) callMap(kind MapKind) *Headers {
	c := v.target()
	if c == nil {
		return nil
	}
	if e := c.root.grpcEvent; e != nil && e.kind == grpcInitial && kind == mapGRPCInitial ||
		e != nil && e.kind == grpcTrailing && kind == mapGRPCTrailing {
		return &e.headers
	}
	switch {
	case c.root.answer == nil:
	case kind == mapHTTPCallHeaders:
		return &c.root.answer.Headers
	case kind == mapHTTPCallTrailers && len(c.root.answer.Trailers) > 0:
		return &c.root.answer.Trailers
	}
	return nil
}

// sameName compares a stored lower-case name with one from the module in any case, without allocating.
func sameName(stored string, name []byte) bool {
	if len(stored) != len(name) {
		return false
	}
	for i := range len(stored) {
		c := name[i]
		if 'A' <= c && c <= 'Z' {
			c += 'a' - 'A'
		}
		if stored[i] != c {
			return false
		}
	}
	return true
}

func (h Headers) index(name []byte) int {
	for i := range h {
		if sameName(h[i][0], name) {
			return i
		}
	}
	return -1
}

func callGetHeader(v *vm, a []uint64) Status {
	if MapKind(uint32(a[0])) > mapKindMax {
		return StatusBadArgument
	}
	name, ok := v.read(a[1], a[2])
	if !ok {
		return StatusInvalidMemoryAccess
	}
	m, st := v.headerMap(a[0], false)
	i := -1
	if st == StatusOK {
		i = m.index(MapKind(uint32(a[0])).lookup(name))
	}
	switch {
	case st != StatusOK && st != StatusNotFound:
		return st
	case i < 0 && v.program.abi == abi010: // the first ABI had no answer for "absent"
		return give(v, "", a[3], a[4])
	case i < 0:
		return StatusNotFound
	}
	// Only the first of several values is visible, as in Envoy.
	return give(v, (*m)[i][1], a[3], a[4])
}

func callAddHeader(v *vm, a []uint64) Status {
	return v.writeHeader(a, MapKind(uint32(a[0])).add)
}

func callReplaceHeader(v *vm, a []uint64) Status {
	return v.writeHeader(a, (*Headers).Set)
}

func (v *vm) writeHeader(a []uint64, write func(m *Headers, name, value string)) Status {
	if MapKind(uint32(a[0])) > mapKindMax {
		return StatusBadArgument
	}
	name, ok1 := v.read(a[1], a[2])
	value, ok2 := v.read(a[3], a[4])
	if !ok1 || !ok2 {
		return StatusInvalidMemoryAccess
	}
	m, st := v.headerMap(a[0], true)
	if st != StatusOK {
		return st
	}
	write(m, strings.ToLower(string(MapKind(uint32(a[0])).lookup(name))), string(value))
	return StatusOK
}

func callRemoveHeader(v *vm, a []uint64) Status {
	if MapKind(uint32(a[0])) > mapKindMax {
		return StatusBadArgument
	}
	name, ok := v.read(a[1], a[2])
	if !ok {
		return StatusInvalidMemoryAccess
	}
	m, st := v.headerMap(a[0], true)
	if st != StatusOK {
		return st
	}
	m.Del(string(MapKind(uint32(a[0])).lookup(name)))
	return StatusOK
}

// callGetHeaderPairs answers an empty list for a map that is not there. Source: Envoy, Context::getHeaderMapPairs.
func callGetHeaderPairs(v *vm, a []uint64) Status {
	if MapKind(uint32(a[0])) > mapKindMax {
		return StatusBadArgument
	}
	m, st := v.headerMap(a[0], false)
	if st != StatusOK || len(*m) == 0 {
		return give(v, "", a[1], a[2])
	}
	return give(v, encodePairs(*m), a[1], a[2])
}

func callSetHeaderPairs(v *vm, a []uint64) Status {
	if MapKind(uint32(a[0])) > mapKindMax {
		return StatusBadArgument
	}
	data, ok := v.read(a[1], a[2])
	if !ok {
		return StatusInvalidMemoryAccess
	}
	m, st := v.headerMap(a[0], true)
	if st != StatusOK {
		return st
	}
	*m = MapKind(uint32(a[0])).normal(decodePairs(data))
	return StatusOK
}

func callGetHeaderSize(v *vm, a []uint64) Status {
	m, st := v.headerMap(a[0], true)
	if st != StatusOK {
		return st
	}
	if !v.putU32(a[1], uint32(m.byteSize())) {
		return StatusInvalidMemoryAccess
	}
	return StatusOK
}

// encodePairs serialises a map: the number of pairs, the lengths of every name and value, then the bytes, each followed by
// a zero byte. Source: proxy-wasm specification 0.2.1, "Serialization".
func encodePairs(h Headers) []byte {
	size := 4
	for i := range h {
		size += 8 + len(h[i][0]) + 1 + len(h[i][1]) + 1
	}
	b := make([]byte, 0, size)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(h)))
	for i := range h {
		b = binary.LittleEndian.AppendUint32(b, uint32(len(h[i][0])))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(h[i][1])))
	}
	for i := range h {
		b = append(append(b, h[i][0]...), 0)
		b = append(append(b, h[i][1]...), 0)
	}
	return b
}

// decodePairs reads a serialised map with lower-case names. What is malformed or over the limits reads as empty, as in
// proxy-wasm-cpp-host, PairsUtil::toPairs.
func decodePairs(b []byte) Headers {
	if len(b) < 4 || len(b) > maxPairsSize {
		return nil
	}
	n := binary.LittleEndian.Uint32(b)
	if n == 0 || n > maxPairs || uint64(len(b)) < 4+8*uint64(n) {
		return nil
	}
	sizes, rest := b[4:4+8*n], b[4+8*n:]
	out := make(Headers, 0, n)
	for i := range n {
		name, tail, ok1 := cutPair(rest, binary.LittleEndian.Uint32(sizes[8*i:]))
		value, tail, ok2 := cutPair(tail, binary.LittleEndian.Uint32(sizes[8*i+4:]))
		if !ok1 || !ok2 {
			return nil
		}
		out = append(out, [2]string{strings.ToLower(name), value})
		rest = tail
	}
	return out
}

// cutPair takes size bytes and the zero byte behind them off b.
func cutPair(b []byte, size uint32) (text string, rest []byte, ok bool) {
	if uint64(len(b)) < uint64(size)+1 || b[size] != 0 {
		return "", nil, false
	}
	return string(b[:size]), b[size+1:], true
}
