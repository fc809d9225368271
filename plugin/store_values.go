package plugin

import (
	"errors"
	"math/bits"
	"unsafe"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// shardsFor gives a shard about 16 to 32 pins when the table is full: one turn
// then reads about 1 KB however many sessions live.
func shardsFor(sessions uint64) uint32 {
	const pinsPerShard = 32
	n := (sessions + pinsPerShard - 1) / pinsPerShard
	return uint32(1) << bits.Len64(n-1)
}

func (s *store) shardOf(h policy.Hash) uint32 { return uint32(h.Lo) & (s.view.shards - 1) }

// shardNames makes the keys of shards: a root, then the shard's number.
type shardNames struct {
	key    string   // the last one
	number *[5]byte // its end: 2^19 shards at most
}

func newShardNames(root string) shardNames {
	key := append([]byte(root), "00000"...)
	return shardNames{unsafe.String(&key[0], len(key)), (*[5]byte)(key[len(root):])}
}

// of returns the key of a shard, valid until that of the next is made.
func (n *shardNames) of(i uint32) string {
	const digits = "0123456789abcdef"
	*n.number = [5]byte{digits[i>>16&15], digits[i>>12&15], digits[i>>8&15], digits[i>>4&15], digits[i&15]}
	return n.key
}

func (s *store) recordKey() string {
	s.key = append(append(s.key[:0], s.prefix...), "replicas"...)
	return unsafe.String(unsafe.SliceData(s.key), len(s.key))
}

func (s *store) readShard(i uint32) (sh shard, cas uint32, ok bool) {
	value, cas, err := s.data.Get(s.shards.of(i))
	switch {
	case err != nil:
		return nil, 0, s.fault(faultSharedData)
	case !shard(value).valid():
		return nil, 0, s.fault(faultSchema)
	}
	return value, cas, true
}

// refresh reads the pool's record into the view.
func (s *store) refresh() (cas uint32, ok bool) {
	value, cas, err := s.data.Get(s.recordKey())
	if err != nil {
		return 0, s.fault(faultSharedData)
	}
	if len(value) == 0 {
		s.view = record{version: s.view.version}
		s.view.newVersion()
		return cas, true
	}
	if err := s.view.decode(value); err != nil {
		return 0, s.fault(faultSchema)
	}
	return cas, true
}

// outcome is how a compare-and-swap ended.
type outcome uint8

const (
	written outcome = iota
	casMismatch
	failed
)

func (s *store) writeRecord(cas uint32) outcome {
	return swap(s.data, &s.stats, s.recordKey(), s.view.text(), cas)
}

// writeReplica writes the record where only the replica at position i, and the number
// of placements, have changed since it was read.
func (s *store) writeReplica(i int, cas uint32) outcome {
	return swap(s.data, &s.stats, s.recordKey(), s.view.textBut(i), cas)
}

// change writes the record as f changes it. f is asked anew when another worker
// was faster, and tells whether there is anything to write.
func (s *store) change(f func(*policy.Replicas) bool) bool {
	for range maxTries {
		cas, ok := s.refresh()
		if !ok {
			return false
		}
		if !f(&s.view.Replicas) {
			s.view.changed() // perhaps
			return true
		}
		if done := s.writeRecord(cas); done != casMismatch {
			return done == written
		}
	}
	return s.fault(faultCAS)
}

// write sets the key to what buf holds.
func (s *store) write(key string, cas uint32) outcome { return swap(s.data, &s.stats, key, s.buf, cas) }

// swap sets the key to the value if it has not changed, and counts how that went.
func swap(data sharedData, stats *storeStats, key string, value []byte, cas uint32) outcome {
	err := data.Set(key, value, cas)
	switch {
	case err == nil:
		return written
	case errors.Is(err, types.ErrorStatusCasMismatch):
		stats.retries++
		return casMismatch
	}
	stats.faults[faultSharedData]++
	return failed
}

// fault counts a fault and is false, for the caller to return.
func (s *store) fault(f fault) bool {
	s.stats.faults[f]++
	return false
}
