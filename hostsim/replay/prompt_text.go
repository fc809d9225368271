package replay

import (
	"encoding/binary"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// BodyBeforePrompt is the JSON body of a turn up to its prompt's text, which a quote and a brace follow.
const BodyBeforePrompt = `{"model":"replay","prompt":"`

// promptPiece is about how much text comes at a time, in bytes: what Envoy reads from a connection at a time.
const promptPiece = 16 << 10

// PromptText writes the text of a turn's prompt, piece by piece: traces have none, and a policy that compares prompts needs
// some. Each token is replica.BytesPerToken letters. Turns whose first blocks have the same ids begin with the same text,
// and other blocks differ. What follows the last full block is the turn's own. The zero value has no text.
type PromptText struct {
	turn  *Turn
	block int
	own   int // bytes behind the last block, still to come
}

// NewPromptText returns the text of t's prompt from its beginning.
func NewPromptText(t *Turn) PromptText {
	return PromptText{turn: t, own: max(0, t.Prompt-len(t.Blocks)*t.BlockTokens) * replica.BytesPerToken}
}

// Next appends the next piece of the text to dst, 16 KiB or little more, and reports whether it is the last one. Blocks are
// not cut. Cost: O(piece), no allocation where dst has room.
func (p *PromptText) Next(dst []byte) (text []byte, last bool) {
	if p.turn == nil {
		return dst, true
	}
	full := len(dst) + promptPiece
	for size := p.turn.BlockTokens * replica.BytesPerToken; p.block < len(p.turn.Blocks); p.block++ {
		if len(dst) >= full {
			return dst, false
		}
		dst = appendLetters(dst, p.turn.Blocks[p.block], size)
	}
	if p.own > 0 {
		dst = appendLetters(dst, ownText(p.turn), p.own)
	}
	p.own = 0
	return dst, true
}

// ownText is the id of what a turn shares with no other.
func ownText(t *Turn) uint64 {
	const prime = 1099511628211 // FNV-1a
	h := uint64(14695981039346656037)
	for i := range len(t.Session) {
		h = (h ^ uint64(t.Session[i])) * prime
	}
	return (h ^ uint64(t.Prompt)) * prime
}

// appendLetters appends n letters that depend on id: SplitMix64, eight letters of four bits each at a time.
func appendLetters(dst []byte, id uint64, n int) []byte {
	for state := splitMix(id); n > 0; n -= 8 {
		state += 0x9e3779b97f4a7c15
		word := splitMix(state)&0x0f0f0f0f0f0f0f0f + 0x6161616161616161
		dst = binary.LittleEndian.AppendUint64(dst, word)
	}
	return dst[:len(dst)+min(n, 0)]
}

// splitMix is the finalizer of SplitMix64 (Steele, Lea and Flood, 2014).
func splitMix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
