package policy

import "encoding/binary"

// PrefixShard is one part of a prefix index, as bytes that can stand in shared
// data:
//
//	byte 0        schema version
//	then 25 bytes an entry: prefix hash (8), flags (1), holders (4 ids of 4)
//
// all little-endian, in the order of their last use, latest first: what a shard
// cannot keep is cut off its end. An entry's holders are in that order too; id 0
// is no holder. An absent or empty value is an empty shard. Nothing here trusts
// the bytes: a foreign shard gives no match or a wrong one, which costs a cache
// miss.
type PrefixShard []byte

const (
	prefixSchema    = 1
	prefixEntrySize = 8 + 1 + 4*MaxHolders
	flagWide        = 1
)

// Valid reports whether the bytes are a shard of this schema.
func (s PrefixShard) Valid() bool {
	return len(s) == 0 || s[0] == prefixSchema && (len(s)-1)%prefixEntrySize == 0
}

// Len returns the number of entries.
func (s PrefixShard) Len() int { return max(len(s)-1, 0) / prefixEntrySize }

// CopyTo copies the shard to dst, which is overwritten and grows if need be. What
// is not valid becomes an empty shard.
func (s PrefixShard) CopyTo(dst []byte) PrefixShard {
	if len(s) == 0 || !s.Valid() {
		return append(dst[:0], prefixSchema)
	}
	return append(dst[:0], s...)
}

func (s PrefixShard) entry(i int) []byte {
	at := 1 + i*prefixEntrySize
	return s[at : at+prefixEntrySize]
}

func (s PrefixShard) find(hash uint64) int {
	if len(s) == 0 {
		return -1
	}
	for i, b := 0, s[1:]; len(b) >= prefixEntrySize; i, b = i+1, b[prefixEntrySize:] {
		if binary.LittleEndian.Uint64(b) == hash {
			return i
		}
	}
	return -1
}

// Match returns what the shard knows of the prompt's prefix with number i. ok is
// false if no replica that may take a session at now holds it.
// Cost: O(entries), no allocation. Pure.
func (s PrefixShard) Match(p *Prompt, i int, r *Replicas, now int64) (m PrefixMatch, ok bool) {
	if !s.Valid() {
		return m, false
	}
	at := s.find(p.hashes[i])
	if at < 0 {
		return m, false
	}
	m = decodeHolders(s.entry(at))
	m.Share = p.share(i)
	panicking := r.Panicking(now)
	ok = m.Wide
	for _, id := range m.Holders {
		at := r.Index(id)
		ok = ok || at >= 0 && r.List[at].places(now, panicking)
	}
	return m, ok
}

// Knows reports that Record would change nothing that is worth a write: the
// replica is the latest holder, no other holder has gone, and the entry is not
// about to be cut off.
func (s PrefixShard) Knows(p *Prompt, i int, replica uint32, r *Replicas) bool {
	if !s.Valid() {
		return false
	}
	at := s.find(p.hashes[i])
	if at < 0 || at > s.Len()/2 {
		return false
	}
	m := decodeHolders(s.entry(at))
	after := m
	after.add(replica, r)
	return after == m
}

// Record notes that the replica with that id holds the prompt's prefix with
// number i, and returns the shard, of entries entries at most. Holders that are
// no members any more make room. The shard must be the caller's own, from CopyTo:
// it is changed in place, and grows by one entry before it is cut.
// Cost: O(entries).
func (s PrefixShard) Record(p *Prompt, i int, replica uint32, r *Replicas, entries int) PrefixShard {
	var m PrefixMatch
	at := s.find(p.hashes[i])
	if at < 0 {
		at = s.Len()
		s = append(s, noEntry[:]...)
	} else {
		m = decodeHolders(s.entry(at))
	}
	m.add(replica, r)
	copy(s[1+prefixEntrySize:], s[1:1+at*prefixEntrySize])
	binary.LittleEndian.PutUint64(s[1:], p.hashes[i])
	m.encodeHolders(s.entry(0))
	return s[:min(len(s), 1+entries*prefixEntrySize)]
}

var noEntry [prefixEntrySize]byte

func decodeHolders(entry []byte) (m PrefixMatch) {
	m.Wide = entry[8]&flagWide != 0
	for i := range m.Holders {
		m.Holders[i] = binary.LittleEndian.Uint32(entry[9+4*i:])
	}
	return m
}

func (m *PrefixMatch) encodeHolders(entry []byte) {
	entry[8] = 0
	if m.Wide {
		entry[8] = flagWide
	}
	for i, id := range m.Holders {
		binary.LittleEndian.PutUint32(entry[9+4*i:], id)
	}
}
