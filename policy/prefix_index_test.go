package policy

import (
	"encoding/binary"
	"testing"
)

func TestPrefixLayout(t *testing.T) {
	for _, c := range []struct {
		max  int
		want PrefixLayout
	}{
		{-1, PrefixLayout{}}, {0, PrefixLayout{}}, {1, PrefixLayout{1, 1}}, {32, PrefixLayout{1, 32}},
		{33, PrefixLayout{2, 16}}, {100, PrefixLayout{4, 25}}, {65536, PrefixLayout{2048, 32}}, {65537, PrefixLayout{4096, 16}},
	} {
		if got := NewPrefixLayout(c.max); got != c.want {
			t.Errorf("%d: %+v", c.max, got)
		}
	}
}

// TestIndexIsBounded: prompts that have nothing in common, many times more than
// there is room for (vllm-project/production-stack#687). Entries and bytes stay
// within the bound, and the room is used.
func TestIndexIsBounded(t *testing.T) {
	const most = 1000
	x, r := NewPrefixIndex(most), some(4)
	text := randomBytes(1, 4096)
	var p Prompt
	for n := range uint64(20_000) {
		binary.LittleEndian.PutUint64(text, n)
		p.Reset(7)
		p.Write(text)
		x.Record(&p, uint32(1+n%4), r)
		if n%1000 != 999 {
			continue
		}
		size := 0
		for _, s := range x.shards {
			size += len(s)
		}
		if e := x.Entries(); e > most || e < most*9/10 || size > len(x.shards)+25*most {
			t.Fatalf("after %d prompts: %d entries, %d bytes", n+1, e, size)
		}
	}
}

// TestIndexKeepsWhatIsUsed: a system prompt that every session begins with stays
// while what follows it comes and goes.
func TestIndexKeepsWhatIsUsed(t *testing.T) {
	x, r := NewPrefixIndex(1000), some(4)
	system := randomBytes(1, 2048)
	for n := range uint64(2000) {
		p := promptOf(7, system, randomBytes(n+2, 2048))
		if m := x.Lookup(p, r, 0); n > 0 && m.Share < 0.4 {
			t.Fatalf("prompt %d: %+v", n, m)
		}
		x.Record(p, 1, r)
	}
}

// TestLookupFindsTheLongest also above one that was pushed out, and passes over
// those that no replica holds which may take a session.
func TestLookupFindsTheLongest(t *testing.T) {
	x, r := NewPrefixIndex(1<<12), some(4)
	text := randomBytes(1, 4096)
	short, long := promptOf(7, text[:1024]), promptOf(7, text)
	x.Record(short, 1, r)
	x.Record(long, 2, r)
	for _, c := range []struct {
		prompt *Prompt
		share  float64
		id     uint32
	}{
		{long, 4032.0 / 4096, 2}, {short, 960.0 / 1024, 2},
		{promptOf(7, text[:2000], randomBytes(2, 2000)), 1728.0 / 4000, 2},
		{promptOf(7, text[:1024], randomBytes(2, 2976)), 960.0 / 4000, 2},
	} {
		if m := x.Lookup(c.prompt, r, 0); m.Share != c.share || m.Holders[0] != c.id {
			t.Errorf("%d bytes: %+v, want share %v", c.prompt.Len(), m, c.share)
		}
	}
	if m := x.Lookup(promptOf(7, randomBytes(3, 4096)), r, 0); m != (PrefixMatch{}) {
		t.Errorf("an unknown prompt: %+v", m)
	}
	at := &x.shards[x.layout.Shard(long, 3)]
	*at = nil
	if m := x.Lookup(long, r, 0); m.Share != 4032.0/4096 {
		t.Errorf("with a hole below: %+v", m)
	}
	r.List[1].State = Draining
	if m := x.Lookup(long, r, 0); m.Share != 960.0/4096 || m.Holders != [4]uint32{2, 1} {
		t.Errorf("the holder of the longest drains: %+v", m)
	}
}

func TestNoIndex(t *testing.T) {
	var x PrefixIndex
	p := promptOf(7, randomBytes(1, 1000))
	x.Record(p, 1, some(1))
	if m := x.Lookup(p, some(1), 0); m != (PrefixMatch{}) || x.Entries() != 0 {
		t.Errorf("%+v", m)
	}
}

// TestIndexAllocatesNothing once its shards are full.
func TestIndexAllocatesNothing(t *testing.T) {
	x, r := NewPrefixIndex(64), some(4)
	text := randomBytes(1, 4096)
	var p Prompt
	n := uint64(0)
	round := func() {
		n++
		binary.LittleEndian.PutUint64(text, n)
		p.Reset(7)
		p.Write(text)
		x.Lookup(&p, r, 0)
		x.Record(&p, uint32(1+n%4), r)
	}
	for range 100 {
		round()
	}
	if got := testing.AllocsPerRun(100, round); got != 0 {
		t.Errorf("%v allocations", got)
	}
}

// BenchmarkPrefixIndex measures the index's part of a first turn with a prompt of
// 48 KB in a full index: look up, and record.
func BenchmarkPrefixIndex(b *testing.B) {
	x, r := NewPrefixIndex(65536), some(64)
	prompts := make([]*Prompt, 4096)
	for n := range prompts {
		prompts[n] = promptOf(7, []byte{byte(n), byte(n >> 8)}, make([]byte, 48<<10))
		x.Record(prompts[n], uint32(1+n%64), r)
	}
	b.ReportAllocs()
	for n := 0; b.Loop(); n++ {
		p := prompts[n*61%len(prompts)]
		x.Lookup(p, r, 0)
		x.Record(p, uint32(1+n%64), r)
	}
}
