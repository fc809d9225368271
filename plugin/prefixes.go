package plugin

import (
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// prefixes remembers which replicas of one pool were given which prompts, in
// shared data, for all workers at once: the shards of policy.PrefixShard under
// pw1/POOL/p/SHARD. A shard that is lost or of another schema is an empty one. What
// shared data refuses costs a cache miss and is counted.
type prefixes struct {
	data   sharedData
	stats  *storeStats
	layout policy.PrefixLayout
	shards shardNames // pw1/POOL/p/SHARD

	// read are the shards that the last lookup read, for what is recorded after
	// it in the same callback.
	read []prefixShard

	buf []byte // scratch
}

// prefixShard is a shard as read.
type prefixShard struct {
	index uint32
	value policy.PrefixShard
	cas   uint32
}

func newPrefixes(data sharedData, stats *storeStats, pool string, most int) *prefixes {
	return &prefixes{
		data: data, stats: stats, layout: policy.NewPrefixLayout(most), shards: newShardNames(keyRoot + pool + "/p/"),
		read: make([]prefixShard, 0, policy.MaxPrefixes),
	}
}

// lookup returns the longest known prefix of the prompt that a replica holds which
// may take a session at now. Shared data that does not answer knows nothing.
func (x *prefixes) lookup(p *policy.Prompt, r *policy.Replicas, now int64) policy.PrefixMatch {
	x.read = x.read[:0]
	for i := p.Prefixes() - 1; i >= 0; i-- {
		s, ok := x.shard(x.layout.Shard(p, i))
		if !ok {
			break
		}
		if m, ok := s.value.Match(p, i, r, now); ok {
			return m
		}
	}
	return policy.PrefixMatch{}
}

// record notes that the replica with that id was given the prompt. It begins with
// what lookup read: if no other worker has written there since, each shard is read
// once and written once.
func (x *prefixes) record(p *policy.Prompt, replica uint32, r *policy.Replicas) {
	var done uint64 // a bit for each prefix
	for i := range p.Prefixes() {
		if done>>i&1 != 0 {
			continue
		}
		index := x.layout.Shard(p, i)
		for j := i; j < p.Prefixes(); j++ {
			if x.layout.Shard(p, j) == index {
				done |= 1 << j
			}
		}
		if !x.recordIn(index, i, p, replica, r) {
			return
		}
	}
}

// recordIn records the prefixes from number first on that fall into the shard. It is
// false if that failed and the rest is not worth trying.
func (x *prefixes) recordIn(index uint32, first int, p *policy.Prompt, replica uint32, r *policy.Replicas) bool {
	for range maxTries {
		s, ok := x.shard(index)
		if !ok {
			return false
		}
		next, changed := s.value, false
		for i := first; i < p.Prefixes(); i++ {
			if x.layout.Shard(p, i) != index || next.Knows(p, i, replica, r) {
				continue
			}
			if !changed {
				next, changed = next.CopyTo(x.buf), true
			}
			next = next.Record(p, i, replica, r, x.layout.Entries)
			x.buf = next
		}
		if !changed {
			return true
		}
		switch swap(x.data, x.stats, x.shards.of(index), next, s.cas) {
		case written:
			return true
		case failed:
			return false
		}
		x.forget(index)
	}
	x.stats.faults[faultCAS]++
	return false
}

// shard returns a shard as it was read last, or now.
func (x *prefixes) shard(index uint32) (prefixShard, bool) {
	for _, s := range x.read {
		if s.index == index {
			return s, true
		}
	}
	value, cas, err := x.data.Get(x.shards.of(index))
	if err != nil {
		x.stats.faults[faultSharedData]++
		return prefixShard{}, false
	}
	s := prefixShard{index, value, cas}
	if !s.value.Valid() { // and so empty to all that follows
		x.stats.faults[faultSchema]++
	}
	x.read = append(x.read, s)
	return s, true
}

// forget makes the next use of a shard read it anew.
func (x *prefixes) forget(index uint32) {
	for i, s := range x.read {
		if s.index == index {
			last := len(x.read) - 1
			x.read[i] = x.read[last]
			x.read = x.read[:last]
			return
		}
	}
}
