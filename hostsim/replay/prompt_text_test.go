package replay

import (
	"bytes"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// wholeText is a prompt's text in one piece.
func wholeText(t *Turn) (text []byte) {
	p := NewPromptText(t)
	for last := false; !last; {
		text, last = p.Next(text)
	}
	return text
}

// Equal ids are equal text in equal places, and what differs in one id, or follows the last block, differs.
func TestPromptText(t *testing.T) {
	const block = 64 * replica.BytesPerToken
	blocks := func(n int, first uint64) (ids []uint64) {
		for i := range n {
			ids = append(ids, first+uint64(i))
		}
		return ids
	}
	base := &Turn{Session: "a", Prompt: 200*64 + 10, BlockTokens: 64, Blocks: blocks(200, 1)}
	text := wholeText(base)
	if len(text) != base.Prompt*replica.BytesPerToken {
		t.Errorf("%d bytes for %d tokens", len(text), base.Prompt)
	}
	if i := bytes.IndexFunc(text, func(r rune) bool { return r < 'a' || r > 'p' }); i >= 0 {
		t.Errorf("byte %d is %q: JSON might spell it otherwise", i, text[i])
	}
	if other := wholeText(base); !bytes.Equal(text, other) {
		t.Error("a turn's text changes")
	}
	for _, c := range []struct {
		name   string
		turn   Turn
		common int // bytes
	}{
		{"next turn", Turn{Session: "a", Prompt: 300 * 64, BlockTokens: 64, Blocks: blocks(300, 1)}, 200 * block},
		{"other session", Turn{Session: "b", Prompt: base.Prompt, BlockTokens: 64, Blocks: blocks(200, 1)}, 200 * block},
		{"branch", Turn{Session: "a", Prompt: base.Prompt, BlockTokens: 64, Blocks: append(blocks(20, 1), blocks(180, 1000)...)}, 20 * block},
		{"nothing in common", Turn{Session: "a", Prompt: base.Prompt, BlockTokens: 64, Blocks: blocks(200, 500)}, 0},
	} {
		other := wholeText(&c.turn)
		n := 0
		for n < min(len(text), len(other)) && text[n] == other[n] {
			n++
		}
		if n < c.common || n > c.common+8 {
			t.Errorf("%s: %d bytes in common, want %d", c.name, n, c.common)
		}
	}
}

// Whatever the sizes, the text is as long as the prompt, and comes in pieces of bounded size.
func TestPromptTextSizes(t *testing.T) {
	for _, c := range []struct{ prompt, block int }{{1, 64}, {63, 64}, {64, 64}, {1000, 1}, {100_000, 512}, {9, 3}, {4160 * 3, 4160}} {
		turn := &Turn{Session: "s", Prompt: c.prompt, BlockTokens: c.block}
		for i := range c.prompt / c.block {
			turn.Blocks = append(turn.Blocks, uint64(i))
		}
		p, size := NewPromptText(turn), 0
		for last := false; !last; {
			var piece []byte
			piece, last = p.Next(nil)
			size += len(piece)
			if most := promptPiece + 2*c.block*replica.BytesPerToken; len(piece) > most {
				t.Errorf("%+v: a piece of %d bytes", c, len(piece))
			}
		}
		if size != c.prompt*replica.BytesPerToken {
			t.Errorf("%+v: %d bytes", c, size)
		}
	}
}
