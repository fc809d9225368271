package etcd

import (
	"slices"
	"sort"
	"strings"
)

// keyValue is a key as of its last put. It is never changed, so that clones share it.
type keyValue struct {
	key, value                  string
	create, mod, version, lease int64
}

// store is the keys at one revision. Of older ones it knows nothing, as if each was compacted away by the next one.
type store struct {
	keys     []*keyValue // sorted by key
	revision int64
}

func (s *store) clone() store { return store{slices.Clone(s.keys), s.revision} }

// search returns where key is or would be.
func search(keys []*keyValue, key string) (int, bool) {
	return slices.BinarySearchFunc(keys, key, func(kv *keyValue, key string) int { return strings.Compare(kv.key, key) })
}

func (s *store) get(key string) *keyValue {
	if i, ok := search(s.keys, key); ok {
		return s.keys[i]
	}
	return nil
}

// span returns the bounds of a range of keys: one key if end is empty, all from key on if it is a zero byte.
func span(keys []*keyValue, key, end string) (from, to int) {
	from, ok := search(keys, key)
	switch {
	case end == "" && ok:
		return from, from + 1
	case end == "":
		return from, from
	case end == "\x00":
		return from, len(keys)
	}
	to, _ = search(keys, end)
	return from, max(from, to)
}

// batch is what one request does to a store: one revision, whatever it changes, and none if it changes nothing. A request
// that may fail fails before its first change.
type batch struct {
	*store
	changes bool
	// before is the keys as the request found them, for the ranges in it that ask for this revision by its number. It is only
	// kept where there is such a range.
	before []*keyValue
}

// now is the revision that a range in the batch sees.
func (b *batch) now() int64 {
	if b.changes {
		return b.revision + 1
	}
	return b.revision
}

func (b *batch) end() {
	b.revision = b.now()
}

// put writes a key and returns the one in its place before, if any.
func (b *batch) put(key, value string, lease int64) (old *keyValue) {
	b.changes = true
	kv := &keyValue{key: key, value: value, create: b.revision + 1, mod: b.revision + 1, version: 1, lease: lease}
	i, ok := search(b.keys, key)
	if !ok {
		b.keys = slices.Insert(b.keys, i, kv)
		return nil
	}
	old = b.keys[i]
	kv.create, kv.version = old.create, old.version+1
	b.keys[i] = kv
	return old
}

// delete removes a range of keys and returns their number.
func (b *batch) delete(key, end string) int {
	from, to := span(b.keys, key, end)
	if from < to {
		b.changes = true
		b.keys = slices.Delete(b.keys, from, to)
	}
	return to - from
}

// deleteLease removes all keys with a lease.
func (b *batch) deleteLease(id int64) {
	b.keys = slices.DeleteFunc(b.keys, func(kv *keyValue) bool {
		b.changes = b.changes || kv.lease == id
		return kv.lease == id
	})
}

// rangeResult is what a range finds. The keys are not to be changed.
type rangeResult struct {
	keys  []*keyValue
	count int
	more  bool
}

// read carries out a range. As in etcd the count is of all keys in it, whatever the limit and the revisions asked for.
func (b *batch) read(r *rangeRequest) rangeResult {
	keys := b.keys
	if b.changes && r.revision > 0 {
		keys = b.before
	}
	from, to := span(keys, r.key, r.end)
	out := rangeResult{count: to - from}
	if r.countOnly {
		return out
	}
	keys = keys[from:to]
	if r.minMod != 0 || r.maxMod != 0 || r.minCreate != 0 || r.maxCreate != 0 {
		var kept []*keyValue
		for _, kv := range keys {
			if kv.mod >= r.minMod && (r.maxMod == 0 || kv.mod <= r.maxMod) &&
				kv.create >= r.minCreate && (r.maxCreate == 0 || kv.create <= r.maxCreate) {
				kept = append(kept, kv)
			}
		}
		keys = kept
	} else if r.sortOrder == sortNone && r.limit > 0 && int64(len(keys)) > r.limit {
		// An accident of 3.4: with a target and no order it sorts only the first limit+1 keys.
		keys = keys[:r.limit+1]
	}
	// As in etcd an order of an unknown number sorts nothing, and none sorts by all but the key.
	if r.sortOrder == sortAscend || r.sortOrder == sortDescend || r.sortOrder == sortNone && r.sortTarget != sortKey {
		keys = slices.Clone(keys)
		sortKeys(keys, r.sortTarget, r.sortOrder == sortDescend)
	}
	if r.limit > 0 && int64(len(keys)) > r.limit {
		keys, out.more = keys[:r.limit], true
	}
	out.keys = keys
	return out
}

// Enums of rangeRequest.
const (
	sortNone = iota
	sortAscend
	sortDescend
)

const (
	sortKey = iota
	sortVersion
	sortCreate
	sortMod
	sortValue
)

// sortKeys leaves equal keys in their order; etcd's order of more than a dozen that are equal is its sort.Sort's.
func sortKeys(keys []*keyValue, target int32, descending bool) {
	sort.SliceStable(keys, func(i, j int) bool {
		a, b := keys[i], keys[j]
		if descending {
			a, b = b, a
		}
		switch target {
		case sortVersion:
			return a.version < b.version
		case sortCreate:
			return a.create < b.create
		case sortMod:
			return a.mod < b.mod
		case sortValue:
			return a.value < b.value
		default:
			return a.key < b.key
		}
	})
}
