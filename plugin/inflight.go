package plugin

import (
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// inflight counts this worker's running requests for each replica of one pool,
// and publishes the counts at each tick in a slot of shared data that no other
// worker writes. A slot that was not written for staleAfter belongs to a VM that
// is gone: it never calls back, so its counts no longer count.
//
//	schema version u8, owner u64, heartbeat u64 (ms), then for each replica
//	id u32, requests u32; little-endian
type inflight struct {
	data   sharedData
	prefix string
	owner  uint64
	counts []inflightCount   // ascending by replica
	others map[uint32]uint32 // of all other live workers, by replica, as observed
	slot   int               // -1: none yet
	cas    uint32
	buf    []byte
}

type inflightCount struct{ replica, requests uint32 }

const (
	staleAfter = 3000 // ms, three of the longest ticks

	maxSlots       = 1024
	slotHeader     = 1 + 8 + 8
	slotCountBytes = 8
)

func newInflight(data sharedData, pool string, owner uint64) *inflight {
	return &inflight{data: data, prefix: keyRoot + pool + "/w/", owner: owner, slot: -1, others: map[uint32]uint32{}}
}

func (f *inflight) begin(replica uint32) {
	i, ok := f.place(replica)
	if !ok {
		if i, ok = f.find(replica); !ok {
			f.counts = slices.Insert(f.counts, i, inflightCount{replica: replica})
		}
	}
	f.counts[i].requests++
}

func (f *inflight) end(replica uint32) {
	i, ok := f.place(replica)
	if !ok {
		i, ok = f.find(replica)
	}
	if ok && f.counts[i].requests > 0 {
		f.counts[i].requests--
	}
}

// place is find where no replica was removed, which ok tells: ids begin at 1.
func (f *inflight) place(replica uint32) (i int, ok bool) {
	i = int(replica) - 1
	return i, uint(i) < uint(len(f.counts)) && f.counts[i].replica == replica
}

// find returns the place of the replica's count, or where it belongs.
func (f *inflight) find(replica uint32) (i int, ok bool) {
	low, high := 0, len(f.counts)
	for low < high {
		middle := (low + high) / 2
		if f.counts[middle].replica < replica {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low, low < len(f.counts) && f.counts[low].replica == replica
}

func (f *inflight) key(slot int) string { return f.prefix + strconv.Itoa(slot) }

// forget drops the counts of replicas that are gone and have no request left.
func (f *inflight) forget(r *policy.Replicas) {
	f.counts = slices.DeleteFunc(f.counts, func(c inflightCount) bool { return c.requests == 0 && r.Index(c.replica) < 0 })
}

// publish writes the worker's counts. A worker that never had a request takes no
// slot.
func (f *inflight) publish(now int64) error {
	f.encode(now)
	if f.slot < 0 && len(f.buf) == slotHeader {
		return nil
	}
	if f.slot >= 0 {
		err := f.data.Set(f.key(f.slot), f.buf, f.cas)
		if err == nil {
			return f.reread()
		}
		if !errors.Is(err, types.ErrorStatusCasMismatch) {
			return err
		}
		f.slot = -1 // this VM stood still for so long that another took the slot
	}
	return f.claim(now)
}

// claim takes the first slot that nobody holds.
func (f *inflight) claim(now int64) error {
	for slot := range maxSlots {
		value, cas, err := f.data.Get(f.key(slot))
		if err != nil {
			return err
		}
		if owner, beat, ok := slotOwner(value); ok && owner != f.owner && now-beat < staleAfter {
			continue
		}
		err = f.data.Set(f.key(slot), f.buf, cas)
		if err == nil {
			f.slot = slot
			return f.reread()
		}
		if !errors.Is(err, types.ErrorStatusCasMismatch) {
			return err
		}
	}
	return nil
}

// reread learns the cas of what was just written.
func (f *inflight) reread() error {
	value, cas, err := f.data.Get(f.key(f.slot))
	if owner, _, ok := slotOwner(value); err == nil && (!ok || owner != f.owner) {
		f.slot = -1
	}
	f.cas = cas
	return err
}

func (f *inflight) encode(now int64) {
	f.buf = appendOwner(f.buf[:0], f.owner, now)
	for _, c := range f.counts {
		if c.requests == 0 {
			continue
		}
		f.buf = binary.LittleEndian.AppendUint32(f.buf, c.replica)
		f.buf = binary.LittleEndian.AppendUint32(f.buf, c.requests)
	}
}

// appendOwner appends what slots and leases begin with: schema version, owner,
// and a time in ms.
func appendOwner(dst []byte, owner uint64, time int64) []byte {
	dst = append(dst, schemaVersion)
	dst = binary.LittleEndian.AppendUint64(dst, owner)
	return binary.LittleEndian.AppendUint64(dst, uint64(time))
}

// slotOwner is the inverse of appendOwner.
func slotOwner(value []byte) (owner uint64, time int64, ok bool) {
	if len(value) < slotHeader || value[0] != schemaVersion {
		return 0, 0, false
	}
	return binary.LittleEndian.Uint64(value[1:]), int64(binary.LittleEndian.Uint64(value[9:])), true
}

// on returns the number of running requests on a replica: this worker's own exact,
// the others' as last observed.
func (f *inflight) on(replica uint32) uint32 {
	n := f.others[replica]
	if i, ok := f.find(replica); ok {
		n += f.counts[i].requests
	}
	return n
}

// observe reads the counts of all other live workers, as of their last ticks.
func (f *inflight) observe(now int64) error {
	clear(f.others)
	for slot := range maxSlots {
		value, _, err := f.data.Get(f.key(slot))
		if err != nil {
			return err
		}
		if len(value) == 0 {
			break // slots are taken in order: nobody ever held this one
		}
		owner, beat, ok := slotOwner(value)
		if !ok || owner == f.owner || now-beat >= staleAfter {
			continue
		}
		for b := value[slotHeader:]; len(b) >= slotCountBytes; b = b[slotCountBytes:] {
			f.others[binary.LittleEndian.Uint32(b)] += binary.LittleEndian.Uint32(b[4:])
		}
	}
	return nil
}

// total adds up the requests of all live workers by replica id.
func (f *inflight) total(now int64) (map[uint32]uint32, error) {
	if err := f.observe(now); err != nil {
		return nil, err
	}
	sum := maps.Clone(f.others)
	for _, c := range f.counts {
		sum[c.replica] += c.requests
	}
	return sum, nil
}
