package policy

import "math/bits"

// MaxHolders is the number of replicas that an index remembers for a prefix.
const MaxHolders = 4

// PrefixMatch is what an index knows of the longest known prefix of a prompt.
type PrefixMatch struct {
	// Holders are the ids of replicas that were given the prefix, latest first;
	// 0 is none. They may have gone or be unfit by now.
	Holders [MaxHolders]uint32
	// Wide says that more than MaxHolders replicas were given the prefix.
	Wide bool
	// Share is the prefix's share of the prompt, 0..1.
	Share float64
}

// Holds reports whether the replica with that id is one of the holders.
func (m *PrefixMatch) Holds(id uint32) bool {
	for _, h := range m.Holders {
		if h == id && id != 0 {
			return true
		}
	}
	return false
}

// add makes the replica the latest holder. Those that are no members any more
// are dropped here and not when they go, which would mean to read every shard.
func (m *PrefixMatch) add(id uint32, r *Replicas) {
	next := PrefixMatch{Wide: m.Wide}
	next.Holders[0] = id
	n := 1
	for _, h := range m.Holders {
		if i := r.Index(h); h == id || i < 0 || r.List[i].State == Removed {
			continue
		}
		if n == MaxHolders {
			next.Wide = true
			break
		}
		next.Holders[n] = h
		n++
	}
	if n == 1 {
		next.Wide = false
	}
	*m = next
}

// PrefixLayout says how an index is cut into shards. All who share an index must
// have one layout.
//
// Each prefix of a prompt has its own shard, by its hash. A prompt is looked up
// from its longest prefix down to the first that is known, and recorded in all:
// in a read and a write for each of 33 at most, 27 for 64 KB, 8 for 1 KB, and
// only for a session's first turn. Several prefixes in one shard would be
// cheaper, but what many prompts have in common would name the shard of all that
// tells them apart, and they would push each other out of it. A binary search
// would read less, but not find what stands above a prefix that was pushed out.
type PrefixLayout struct {
	// Shards is a power of two, or 0 where there is no index.
	Shards uint32
	// Entries is the most that one shard holds.
	Entries int
}

// NewPrefixLayout returns the layout for an index of maxPrefixes entries at most,
// so of 25 bytes for each and one for each shard; below 1 there is none.
func NewPrefixLayout(maxPrefixes int) PrefixLayout {
	if maxPrefixes < 1 {
		return PrefixLayout{}
	}
	// 16 to 32 entries: a shard is read and written in less than 1 KB.
	const entries = 32
	shards := 1 << bits.Len(uint((maxPrefixes-1)/entries))
	return PrefixLayout{Shards: uint32(shards), Entries: maxPrefixes / shards}
}

// Shard returns the number of the shard of the prompt's prefix with number i.
func (l PrefixLayout) Shard(p *Prompt, i int) uint32 { return uint32(p.hashes[i]) & (l.Shards - 1) }

// PrefixIndex remembers which replicas were given which prefixes, for one caller
// at a time. The plugin does the same with the same shards in shared data. The
// zero value remembers nothing.
type PrefixIndex struct {
	layout PrefixLayout
	shards []PrefixShard
}

// NewPrefixIndex returns an index of maxPrefixes entries at most.
func NewPrefixIndex(maxPrefixes int) PrefixIndex {
	l := NewPrefixLayout(maxPrefixes)
	return PrefixIndex{l, make([]PrefixShard, l.Shards)}
}

// Lookup returns the longest known prefix of the prompt that a replica holds
// which may take a session at now.
func (x *PrefixIndex) Lookup(p *Prompt, r *Replicas, now int64) PrefixMatch {
	if len(x.shards) == 0 {
		return PrefixMatch{}
	}
	for i := p.Prefixes() - 1; i >= 0; i-- {
		if m, ok := x.shards[x.layout.Shard(p, i)].Match(p, i, r, now); ok {
			return m
		}
	}
	return PrefixMatch{}
}

// Record notes that the replica with that id was given the prompt.
func (x *PrefixIndex) Record(p *Prompt, replica uint32, r *Replicas) {
	if len(x.shards) == 0 {
		return
	}
	for i := range p.Prefixes() {
		s := &x.shards[x.layout.Shard(p, i)]
		if !s.Knows(p, i, replica, r) {
			*s = s.CopyTo(*s).Record(p, i, replica, r, x.layout.Entries)
		}
	}
}

// Entries returns the number of entries.
func (x *PrefixIndex) Entries() (n int) {
	for _, s := range x.shards {
		n += s.Len()
	}
	return n
}
