package hostsim

import (
	"maps"
	"slices"
	"sync"
)

// SharedData is the key-value store that all virtual machines of a process share, a namespace per vm_id, and their
// shared queues (see SharedQueue). The store has Envoy's rules: one counter numbers every write of the whole process
// and skips 0; a write to a key that exists fails with StatusCASMismatch when its cas is neither 0 nor the key's
// number; a write to an absent key always succeeds, whatever its cas; nothing is ever deleted. Safe for concurrent use.
// Source: proxy-wasm-cpp-host, src/shared_data.cc.
type SharedData struct {
	mu     sync.Mutex
	spaces map[string]*SharedSpace
	cas    uint32
	queues queues
}

// NewSharedData returns an empty store.
func NewSharedData() *SharedData { return &SharedData{spaces: map[string]*SharedSpace{}} }

// Space returns the namespace of vmID, creating it if absent.
func (d *SharedData) Space(vmID string) *SharedSpace {
	d.mu.Lock()
	defer d.mu.Unlock()
	s := d.spaces[vmID]
	if s == nil {
		s = &SharedSpace{data: d, vmID: vmID, entries: map[string]sharedEntry{}}
		d.spaces[vmID] = s
	}
	return s
}

func (d *SharedData) nextCAS() uint32 {
	d.cas++
	if d.cas == 0 {
		d.cas = 1
	}
	return d.cas
}

// SharedSpace is one vm_id's part of a SharedData. Safe for concurrent use.
type SharedSpace struct {
	data    *SharedData
	vmID    string
	entries map[string]sharedEntry
	bytes   int
}

// sharedEntry's value is never written to again once stored, so that readers need no copy under the lock.
type sharedEntry struct {
	value []byte
	cas   uint32
}

// Get returns a key's value, which the caller must not change, its number, and whether the key exists.
func (s *SharedSpace) Get(key string) (value []byte, cas uint32, ok bool) {
	return s.lookup([]byte(key))
}

// Set stores a copy of value. It answers StatusOK or StatusCASMismatch.
func (s *SharedSpace) Set(key string, value []byte, cas uint32) Status {
	return s.store([]byte(key), value, cas)
}

// lookup is Get for a key that lies in a module's memory.
func (s *SharedSpace) lookup(key []byte) (value []byte, cas uint32, ok bool) {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	e, ok := s.entries[string(key)]
	return e.value, e.cas, ok
}

// store is Set for a key that lies in a module's memory.
func (s *SharedSpace) store(key, value []byte, cas uint32) Status {
	value = slices.Clone(value)
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	e, ok := s.entries[string(key)]
	if ok && cas != 0 && cas != e.cas {
		return StatusCASMismatch
	}
	if !ok {
		s.bytes += len(key)
	}
	s.bytes += len(value) - len(e.value)
	s.entries[string(key)] = sharedEntry{value: value, cas: s.data.nextCAS()}
	return StatusOK
}

// Keys returns all keys, sorted.
func (s *SharedSpace) Keys() []string {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	return slices.Sorted(maps.Keys(s.entries))
}

// Len returns the number of keys.
func (s *SharedSpace) Len() int {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	return len(s.entries)
}

// Bytes returns the size of all keys and values, without the store's own overhead.
func (s *SharedSpace) Bytes() int {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	return s.bytes
}
