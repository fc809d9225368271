package hostsim

import (
	"fmt"

	"github.com/tetratelabs/wazero/experimental"
)

// DefaultMemoryLimitPages is a gateway's limit for a virtual machine's memory, in pages of 64 KiB: 1 GiB. Source:
// proxy-wasm-cpp-host, include/proxy-wasm/limits.h, PROXY_WASM_HOST_MAX_WASM_MEMORY_SIZE_BYTES, and src/v8/v8.cc.
const DefaultMemoryLimitPages = 16384

// linearMemory is one virtual machine's memory. It refuses to grow over the host's limit or while a fault starves it;
// the module's memory.grow then answers -1, as in a gateway.
type linearMemory struct {
	v    *vm
	data []byte
}

// Allocate implements experimental.MemoryAllocator. What the module declares beyond the limit is not reserved.
func (m *linearMemory) Allocate(capacity, _ uint64) experimental.LinearMemory {
	m.data = make([]byte, 0, min(capacity, m.limit()))
	return m
}

// Reallocate implements experimental.LinearMemory.
func (m *linearMemory) Reallocate(size uint64) []byte {
	switch f := m.v.starved; {
	case f != nil && f == m.v.host.faults.Load():
		m.v.refused = fmt.Errorf("its memory was kept at %d pages by a fault", len(m.data)/pageSize)
		m.v.rec.starved(size)
		return nil
	case m.v.played != nil && m.v.played.starved(size):
		return nil
	case size > m.limit():
		m.v.refused = fmt.Errorf("asked for %d pages of memory, more than the limit of %d", size/pageSize, m.limit()/pageSize)
		return nil
	}
	if size > uint64(cap(m.data)) {
		grown := make([]byte, len(m.data), max(size, min(size+size/4, m.limit())))
		copy(grown, m.data)
		m.data = grown
	}
	m.data = m.data[:size] // zero: nothing has been there
	return m.data
}

// Free implements experimental.LinearMemory.
func (m *linearMemory) Free() { m.data = nil }

func (m *linearMemory) limit() uint64 { return uint64(m.v.host.config.MemoryLimitPages) * pageSize }
