package plugin

import (
	"encoding/binary"
	"errors"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// record is a pool's replicas as they stand in shared data, little-endian:
//
//	schema version u8, shards u32, members u64, adopted u64 (ms), since u64,
//	placements u64, next id u32, number of replicas u16, then for each
//	id u32, weight u32, open u32, last chosen u64, placements u64, state u8,
//	flags u8, length of address u8, address, and if a flag says so the health:
//	failures u16, cooldown u64 (ms), since u64 (ms), until u64 (ms);
//	of a removed replica also when it was removed, u64 (ms)
type record struct {
	policy.Replicas
	// shards is the number of session shards, a power of two. It is fixed when
	// the pool is first configured: another number would orphan every pin.
	shards uint32
	// membership is what is in force, see membership.go.
	membership membership

	// version is another one whenever a replica came or went, or became or ceased to be
	// plain; it is never noVersion.
	version uint32

	// raw is the record's text as last read or written, and ends are the ends of the
	// replicas in it. known says that the replicas are those of raw: whoever changes
	// them, and does not write them at once, calls changed.
	raw   []byte
	ends  []int
	known bool
}

// changed says that the replicas are not those of the text any more: the next decode
// reads them all.
func (r *record) changed() { r.known = false }

const noVersion = 1<<32 - 1

func (r *record) newVersion() { r.version = (r.version + 1) % noVersion }

const (
	recordHeader = 1 + 4 + 3*8 + 8 + 4 + 2
	replicaSize  = 4 + 4 + 4 + 8 + 8 + 1 + 1 + 1 // then the address
	healthSize   = 2 + 3*8

	flagJoining = 1
	flagHealth  = 2 // the health is not zero, and follows the address
	flagProbing = 4
	flagDrained = 8
	flagVoid    = 16
)

var errSchema = errors.New("pinwheel: shared data of another schema")

// text returns the whole record, valid until it is next read or written.
func (r *record) text() []byte {
	r.raw = r.appendHeader(r.raw[:0])
	r.ends = r.ends[:0]
	for i := range r.List {
		r.raw = appendReplica(r.raw, &r.List[i])
		r.ends = append(r.ends, len(r.raw))
	}
	r.known = true
	r.newVersion() // perhaps
	return r.raw
}

// textBut is text where only the replica at position i, and Placements, have changed
// since the record was last read or written: to write all of a large pool anew would
// cost more than all else that a placement does.
func (r *record) textBut(i int) []byte {
	if !r.known {
		return r.text()
	}
	start, end := r.start(i), r.ends[i]
	// In what follows the replica may end sooner or later: then its health, say, is new.
	tail := len(r.raw)
	r.raw = appendReplica(r.raw, &r.List[i])
	if len(r.raw)-tail != end-start {
		return r.text()
	}
	copy(r.raw[start:end], r.raw[tail:])
	r.appendHeader(r.raw[:0])
	r.raw = r.raw[:tail]
	return r.raw
}

// start is where the replica at position i begins in raw.
func (r *record) start(i int) int {
	if i == 0 {
		return recordHeader
	}
	return r.ends[i-1]
}

func (r *record) appendHeader(dst []byte) []byte {
	le := binary.LittleEndian
	dst = append(dst, schemaVersion)
	dst = le.AppendUint32(dst, r.shards)
	dst = le.AppendUint64(dst, r.membership.sum)
	dst = le.AppendUint64(dst, uint64(r.membership.adopted))
	dst = le.AppendUint64(dst, r.membership.since)
	dst = le.AppendUint64(dst, r.Placements)
	dst = le.AppendUint32(dst, r.NextID)
	return le.AppendUint16(dst, uint16(len(r.List)))
}

func appendReplica(dst []byte, c *policy.Replica) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, c.ID)
	dst = le.AppendUint32(dst, c.Weight)
	dst = le.AppendUint32(dst, c.Open)
	dst = le.AppendUint64(dst, c.LastChosen)
	dst = le.AppendUint64(dst, c.Placements)
	flags := byte(0)
	if c.Joining {
		flags |= flagJoining
	}
	if c.Drained {
		flags |= flagDrained
	}
	if c.Void {
		flags |= flagVoid
	}
	h := &c.Health
	if *h != (policy.Health{}) {
		flags |= flagHealth
	}
	if h.Probing {
		flags |= flagProbing
	}
	dst = append(dst, byte(c.State), flags, byte(len(c.Address)))
	dst = append(dst, c.Address...)
	if flags&flagHealth != 0 {
		dst = le.AppendUint16(dst, h.Failures)
		dst = le.AppendUint64(dst, uint64(h.Cooldown))
		dst = le.AppendUint64(dst, uint64(h.Since))
		dst = le.AppendUint64(dst, uint64(h.Until))
	}
	if c.State == policy.Removed {
		dst = le.AppendUint64(dst, uint64(c.RemovedAt))
	}
	return dst
}

// decode reads b into r. Addresses that r has in their places already are kept,
// so that reading loads allocates nothing; and what has not changed since r was last
// read or written is not read again: of a large pool, between two placements, that is
// all but a few replicas.
func (r *record) decode(b []byte) error {
	if len(b) < recordHeader || b[0] != schemaVersion {
		return errSchema
	}
	le := binary.LittleEndian
	r.shards = le.Uint32(b[1:])
	r.membership = membership{
		sum:     le.Uint64(b[5:]),
		adopted: int64(le.Uint64(b[13:])),
		since:   le.Uint64(b[21:]),
	}
	r.Placements = le.Uint64(b[29:])
	r.NextID = le.Uint32(b[37:])
	count := int(le.Uint16(b[41:]))
	if count != len(r.List) {
		r.List = make([]policy.Replica, count)
		r.known = false
		r.newVersion()
	}
	if len(r.ends) != count {
		r.ends = make([]int, count)
		r.known = false
	}
	known := r.known
	r.known = false
	at, was := recordHeader, recordHeader
	for i := 0; i < count; {
		if group := min(i+comparedAtOnce, count); known && at == was && same(b, r.raw, at, r.ends[group-1]) {
			at, was, i = r.ends[group-1], r.ends[group-1], group
			continue
		}
		for range min(comparedAtOnce, count-i) {
			c := &r.List[i]
			id, rank, plain := c.ID, c.Rank, c.Plain()
			n := decodeReplica(c, b[at:])
			if n == 0 {
				r.List = nil
				r.newVersion()
				return errSchema
			}
			if id != c.ID || rank != c.Rank || plain != c.Plain() { // of another address, where a record was lost
				r.newVersion()
			}
			at, was = at+n, r.ends[i]
			r.ends[i] = at
			i++
		}
	}
	r.raw, r.known = append(r.raw[:0], b[:at]...), true
	return nil
}

// comparedAtOnce is the number of replicas, some 60 bytes each, that are read again
// where one has changed.
const comparedAtOnce = 8

// same reports whether a and b hold the same from start to end.
func same(a, b []byte, start, end int) bool {
	return end <= len(a) && string(a[start:end]) == string(b[start:end])
}

// decodeReplica reads one replica and returns its size, 0 if b is too short.
func decodeReplica(c *policy.Replica, b []byte) int {
	if len(b) < replicaSize {
		return 0
	}
	le := binary.LittleEndian
	end := replicaSize + int(b[replicaSize-1])
	size := end
	state, flags := policy.State(b[28]), b[29]
	if flags&flagHealth != 0 {
		size += healthSize
	}
	healthEnd := size
	c.State, c.RemovedAt = state, 0
	if c.State == policy.Removed {
		size += 8
	}
	if len(b) < size {
		return 0
	}
	if c.State == policy.Removed {
		c.RemovedAt = int64(le.Uint64(b[healthEnd:]))
	}
	c.Health = policy.Health{}
	if h := b[end:healthEnd]; len(h) > 0 {
		c.Health = policy.Health{
			Failures: le.Uint16(h), Probing: flags&flagProbing != 0,
			Cooldown: int64(le.Uint64(h[2:])), Since: int64(le.Uint64(h[10:])), Until: int64(le.Uint64(h[18:])),
		}
	}
	c.ID = le.Uint32(b)
	c.Weight = le.Uint32(b[4:])
	c.Open = le.Uint32(b[8:])
	c.LastChosen = le.Uint64(b[12:])
	c.Placements = le.Uint64(b[20:])
	c.Joining = flags&flagJoining != 0
	c.Drained = flags&flagDrained != 0
	c.Void = flags&flagVoid != 0
	if address := b[replicaSize:end]; c.Address != string(address) {
		c.Address = string(address)
		c.Rank = policy.RankAddress(c.Address)
	}
	return size
}
