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
//	failures u16, cooldown u64 (ms), since u64 (ms), until u64 (ms)
//
// When a replica was removed is not kept: no address comes back as what it was.
type record struct {
	policy.Replicas
	// shards is the number of session shards, a power of two. It is fixed when
	// the pool is first configured: another number would orphan every pin.
	shards uint32
	// membership is what is in force, see membership.go.
	membership membership
}

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

// encode appends the record to dst.
func (r *record) encode(dst []byte) []byte {
	le := binary.LittleEndian
	dst = append(dst, schemaVersion)
	dst = le.AppendUint32(dst, r.shards)
	dst = le.AppendUint64(dst, r.membership.sum)
	dst = le.AppendUint64(dst, uint64(r.membership.adopted))
	dst = le.AppendUint64(dst, r.membership.since)
	dst = le.AppendUint64(dst, r.Placements)
	dst = le.AppendUint32(dst, r.NextID)
	dst = le.AppendUint16(dst, uint16(len(r.List)))
	for i := range r.List {
		c := &r.List[i]
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
	}
	return dst
}

// decode reads b into r. Addresses that r has in their places already are kept,
// so that reading loads allocates nothing.
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
	if count := int(le.Uint16(b[41:])); count != len(r.List) {
		r.List = make([]policy.Replica, count)
	}
	b = b[recordHeader:]
	for i := range r.List {
		n := decodeReplica(&r.List[i], b)
		if n == 0 {
			r.List = nil
			return errSchema
		}
		b = b[n:]
	}
	return nil
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
	if len(b) < size {
		return 0
	}
	c.Health = policy.Health{}
	if h := b[end:size]; len(h) > 0 {
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
	c.State = state
	c.Joining = flags&flagJoining != 0
	c.Drained = flags&flagDrained != 0
	c.Void = flags&flagVoid != 0
	if address := b[replicaSize:end]; c.Address != string(address) {
		c.Address = string(address)
		c.Rank = policy.RankAddress(c.Address)
	}
	return size
}
