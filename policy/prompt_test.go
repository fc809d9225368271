package policy

import (
	"bytes"
	"math/rand/v2"
	"testing"
)

// randomBytes returns n bytes that are equal for equal seeds.
func randomBytes(seed uint64, n int) []byte {
	r := rand.New(rand.NewPCG(seed, 1))
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	return b
}

func promptOf(seed uint64, pieces ...[]byte) *Prompt {
	p := &Prompt{}
	p.Reset(seed)
	for _, b := range pieces {
		p.Write(b)
	}
	return p
}

// TestPrefixLengths holds the lengths to what their documentation promises.
func TestPrefixLengths(t *testing.T) {
	if prefixLength(0) != 256 || prefixLength(MaxPrefixes-1) < 200_000 {
		t.Errorf("from %d to %d bytes", prefixLength(0), prefixLength(MaxPrefixes-1))
	}
	for i := 1; i < MaxPrefixes; i++ {
		short, long := prefixLength(i-1), prefixLength(i)
		if long <= short || 4*long > 5*short || long%64 != 0 {
			t.Errorf("%d bytes, then %d", short, long)
		}
	}
	for _, c := range []struct{ bytes, prefixes int }{
		{0, 0}, {255, 0}, {256, 1}, {319, 1}, {320, 2}, {1 << 10, 8}, {5 << 10, 16}, {48 << 10, 26}, {1 << 20, MaxPrefixes},
	} {
		if got := promptOf(0, make([]byte, c.bytes)).Prefixes(); got != c.prefixes {
			t.Errorf("%d bytes have %d prefixes, want %d", c.bytes, got, c.prefixes)
		}
	}
}

// TestPiecesDoNotMatter: a body comes in chunks of any size.
func TestPiecesDoNotMatter(t *testing.T) {
	text := randomBytes(1, 5000)
	want := promptOf(7, text)
	r := rand.New(rand.NewPCG(2, 2))
	for n := range 2000 {
		var pieces [][]byte
		for rest := text; len(rest) > 0; {
			size := 1 + r.IntN(min(len(rest), 1+r.IntN(1+n%500)))
			pieces, rest = append(pieces, rest[:size]), rest[size:]
		}
		if got := promptOf(7, pieces...); got.hashes != want.hashes || got.count != want.count || got.Len() != 5000 {
			t.Fatalf("%d pieces: %d prefixes of %d bytes, want %d of %d", len(pieces), got.count, got.Len(), want.count, want.Len())
		}
	}
	if got := promptOf(7, bytes.Repeat([]byte{1}, 300_000), text[:3], text[3:]); got.Len() != 305_000 {
		t.Errorf("%d bytes beyond the last prefix", got.Len())
	}
}

// TestPrefixesInCommon: two prompts have the hashes of exactly those prefixes in
// common that end before they differ, wherever and however little that is.
func TestPrefixesInCommon(t *testing.T) {
	text := randomBytes(3, 3000)
	same := promptOf(7, text)
	for at := range text {
		text[at] ^= 1 << (at % 8)
		other := promptOf(7, text)
		text[at] ^= 1 << (at % 8)
		for i := range same.count {
			if equal := same.hashes[i] == other.hashes[i]; equal != (prefixLength(i) <= at) {
				t.Fatalf("byte %d differs: prefix of %d bytes equal is %v", at, prefixLength(i), equal)
			}
		}
	}
}

// TestHashesDiffer: between prompts, lengths and seeds, also of the simplest texts.
func TestHashesDiffer(t *testing.T) {
	seen := map[uint64]string{}
	for _, seed := range []uint64{0, 1, 1 << 63} {
		for b := range 64 {
			p := promptOf(seed, bytes.Repeat([]byte{byte(b)}, 3000))
			for i := range p.count {
				if other, ok := seen[p.hashes[i]]; ok {
					t.Fatalf("seed %d, byte %d, prefix %d hashes like %s", seed, b, i, other)
				}
				seen[p.hashes[i]] = "another"
			}
		}
	}
}

// TestShardsAreEven: the hash's low bits choose the shard.
func TestShardsAreEven(t *testing.T) {
	const prompts, shards = 20_000, 64
	var counts [shards]int
	for n := range uint64(prompts) {
		p := promptOf(7, []byte{byte(n), byte(n >> 8)}, make([]byte, 254))
		counts[PrefixLayout{Shards: shards}.Shard(p, 0)]++
	}
	for i, n := range counts {
		// Five standard deviations around 312.
		if n < 312-88 || n > 312+88 {
			t.Errorf("shard %d has %d of %d", i, n, prompts)
		}
	}
}

func TestResetForgets(t *testing.T) {
	p := promptOf(7, randomBytes(4, 1003))
	p.Reset(7)
	p.Write(randomBytes(5, 700))
	if want := promptOf(7, randomBytes(5, 700)); p.count != want.count || [5]uint64(p.hashes[:5]) != [5]uint64(want.hashes[:5]) || p.Len() != 700 {
		t.Errorf("%d prefixes of %d bytes", p.count, p.Len())
	}
}

// BenchmarkPrompt measures the hashes of a prompt's prefixes.
func BenchmarkPrompt(b *testing.B) {
	text := randomBytes(1, 200<<10)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	var p Prompt
	for b.Loop() {
		p.Reset(7)
		p.Write(text)
	}
}
