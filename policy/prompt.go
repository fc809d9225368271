package policy

import (
	"encoding/binary"
	"math/bits"
)

const (
	// MaxPrefixes is the number of prefixes of one prompt that have a hash.
	MaxPrefixes = 33

	// prefixUnit divides every prefix length, in bytes; shortestPrefix is in
	// units.
	prefixUnit     = 64
	shortestPrefix = 4
)

// prefixUnits are the lengths of a prompt's prefixes, in units: 256 bytes, then
// each a quarter longer than the last, up to 212 KB. They depend on nothing but
// their number, so that two prompts have the hash of a common prefix in common.
// Growing by a fixed share they are few (26 for 48 KB), and the longest one
// within a common prefix falls short of it by a fifth at most, whatever its
// length. A shorter prefix than the first is sooner computed than found.
var prefixUnits = geometric()

func geometric() (units [MaxPrefixes]int) {
	units[0] = shortestPrefix
	for i := 1; i < MaxPrefixes; i++ {
		units[i] = units[i-1] + units[i-1]/4
	}
	return units
}

// prefixLength returns the length of the prefix with number i, in bytes.
func prefixLength(i int) int { return prefixUnits[i] * prefixUnit }

// Prompt is the prefixes of a prompt that is read in pieces, as hashes. The zero
// value is the empty prompt under a seed of 0.
//
// The hash is quick, not cryptographic: who knows a prompt can make another with
// its hash. That wins him the place which sending the prompt itself would.
type Prompt struct {
	state  uint64
	word   [8]byte // the last size%8 bytes, not yet in state
	size   int
	count  int
	hashes [MaxPrefixes]uint64
}

// Reset makes the prompt empty. All who share an index use one seed.
func (p *Prompt) Reset(seed uint64) { p.state, p.size, p.count = mix(seed), 0, 0 }

// Write adds the next bytes of the prompt. Each byte is read once.
// Cost: O(len(b)), no allocation.
func (p *Prompt) Write(b []byte) {
	if part := p.size % 8; part > 0 {
		n := copy(p.word[part:], b)
		p.size += n
		if part+n < 8 {
			return
		}
		b = b[n:]
		p.add(binary.LittleEndian.Uint64(p.word[:]))
	}
	for p.count < MaxPrefixes && len(b) >= 8 {
		n := min(prefixLength(p.count)-p.size, len(b)) &^ 7
		p.state = absorbAll(p.state, b[:n])
		p.size, b = p.size+n, b[n:]
		p.cut()
	}
	// Less than a word, or more than the last prefix needs.
	p.size += len(b)
	copy(p.word[:], b)
}

func (p *Prompt) add(word uint64) {
	p.state = absorb(p.state, word)
	p.cut()
}

// cut ends a prefix here if one ends here.
func (p *Prompt) cut() {
	if p.count < MaxPrefixes && p.size == prefixLength(p.count) {
		p.hashes[p.count] = mix(p.state + uint64(p.size))
		p.count++
	}
}

// Len returns the number of bytes written.
func (p *Prompt) Len() int { return p.size }

// absorbAll takes whole words into the state, four at a time: in wasm each bound that
// is checked costs as much as a word.
func absorbAll(state uint64, b []byte) uint64 {
	for ; len(b) >= 32; b = b[32:] {
		state = absorb(state, binary.LittleEndian.Uint64(b))
		state = absorb(state, binary.LittleEndian.Uint64(b[8:]))
		state = absorb(state, binary.LittleEndian.Uint64(b[16:]))
		state = absorb(state, binary.LittleEndian.Uint64(b[24:]))
	}
	for ; len(b) >= 8; b = b[8:] {
		state = absorb(state, binary.LittleEndian.Uint64(b))
	}
	return state
}

// absorb takes eight bytes into the state.
func absorb(state, word uint64) uint64 {
	return bits.RotateLeft64((state^word)*0x9e3779b97f4a7c15, 29)
}

// mix is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// Prefixes returns the number of prefixes of the prompt, 0..MaxPrefixes.
func (p *Prompt) Prefixes() int { return p.count }

// share returns the share of the prompt that its prefix with number i is.
func (p *Prompt) share(i int) float64 { return float64(prefixLength(i)) / float64(p.size) }
