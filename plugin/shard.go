package plugin

import (
	"encoding/binary"
	"unsafe"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// A shard holds the pins of the sessions whose hash falls into it:
//
//	byte 0        schema version
//	then 28 bytes a pin: hash (16), replica id (4), last seen (8, ms)
//
// all little-endian, in no order. The replica id's highest bit is set where other gateways
// may not agree on the pin (agreement.go); no id is that high. An absent or empty value is an empty shard.
type shard []byte

const (
	// schemaVersion is that of all values but the secret and the shards of a prefix
	// index. It has been 1 in every release. keyRoot names it, too: while a gateway
	// updates the module, the old one serves its last streams beside the new one,
	// each with state of its own.
	schemaVersion = 1
	keyRoot       = "pw1/"

	pinSize = 28
	doubt   = 1 << 31
)

// valid reports whether the bytes are a shard of this schema.
func (s shard) valid() bool {
	return len(s) == 0 || s[0] == schemaVersion && (len(s)-1)%pinSize == 0
}

func (s shard) len() int { return len(s) / pinSize }

func (s shard) hash(i int) policy.Hash {
	b := s[1+i*pinSize:]
	return policy.Hash{Hi: binary.LittleEndian.Uint64(b), Lo: binary.LittleEndian.Uint64(b[8:])}
}

// bytes are those of the pin at i.
func (s shard) bytes(i int) []byte { return s[1+i*pinSize : 1+(i+1)*pinSize] }

// pin returns the pin at i. It reads words where they stand, little-endian, as wasm does
// (WebAssembly Core 4.4.7) and the processors that tests run on: encoding/binary reads byte
// by byte on wasm.
func (s shard) pin(i int) policy.Pin {
	b := (*[12]byte)(s[1+i*pinSize+16:])
	return policy.Pin{Replica: *(*uint32)(unsafe.Pointer(b)) &^ doubt, LastSeen: *(*int64)(unsafe.Pointer(&b[4]))}
}

// doubted reports whether other gateways may not agree on the pin at i.
func (s shard) doubted(i int) bool { return s[1+i*pinSize+19]&(doubt>>24) != 0 }

// setDoubt says whether they may not.
func (s shard) setDoubt(i int, on bool) {
	b := &s[1+i*pinSize+19]
	if *b &^= doubt >> 24; on {
		*b |= doubt >> 24
	}
}

// see records that the session with the pin at i was seen now.
func (s shard) see(i int, now int64) { binary.LittleEndian.PutUint64(s[1+i*pinSize+20:], uint64(now)) }

// copyTo copies the shard to dst, with room for one pin more.
func (s shard) copyTo(dst []byte) shard {
	if len(s) == 0 {
		return append(dst[:0], schemaVersion)
	}
	return append(dst[:0], s...)
}

// put sets the session's pin in place, or appends it where i is -1.
func (s shard) put(i int, h policy.Hash, p policy.Pin) shard {
	if i < 0 {
		i = s.len()
		s = append(s, make([]byte, pinSize)...)
	}
	b := s[1+i*pinSize:]
	binary.LittleEndian.PutUint64(b, h.Hi)
	binary.LittleEndian.PutUint64(b[8:], h.Lo)
	binary.LittleEndian.PutUint32(b[16:], p.Replica)
	binary.LittleEndian.PutUint64(b[20:], uint64(p.LastSeen))
	return s
}

// remove takes out the pin at i.
func (s shard) remove(i int) shard {
	last := len(s) - pinSize
	copy(s[1+i*pinSize:], s[last:])
	return s[:last]
}
