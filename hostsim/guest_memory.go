package hostsim

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
)

var errNoAllocator = errors.New("the module exports neither malloc nor proxy_on_memory_allocate")

// read returns a view of the module's memory, valid until the module runs again.
func (v *vm) read(ptr, size uint64) ([]byte, bool) { return v.mem.Read(uint32(ptr), uint32(size)) }

func (v *vm) putU32(ptr uint64, value uint32) bool {
	if v.rec != nil {
		v.rec.wroteNumber(ptr, uint64(value))
	}
	return v.mem.WriteUint32Le(uint32(ptr), value)
}

func (v *vm) putU64(ptr uint64, value uint64) bool {
	if v.rec != nil {
		v.rec.wroteNumber(ptr, value)
	}
	return v.mem.WriteUint64Le(uint32(ptr), value)
}

// putBytes writes where the module has made room, or nowhere.
func (v *vm) putBytes(ptr uint64, data []byte) {
	if v.rec != nil {
		v.rec.wroteBytes(ptr, data)
	}
	v.mem.Write(uint32(ptr), data)
}

// alloc asks the module for size bytes. A trap in there is a trap of the callback around it.
func (v *vm) alloc(size int) (uint32, bool) {
	if v.allocator == nil {
		panic(errNoAllocator)
	}
	if v.played != nil && v.played.skipAllocation {
		return 0, false
	}
	outer := v.phase
	v.phase = phaseAlloc
	ptr, err := v.invoke(v.allocator, uint64(size))
	v.phase = outer
	if err != nil {
		panic(fmt.Errorf("in %s: %w", v.allocator.name, err))
	}
	return uint32(ptr), uint32(ptr) != 0
}

// give hands data to the module in memory that the module allocates, and writes its address and size where the module
// asked for them. No data means address 0 and no allocation. Source: proxy-wasm-cpp-host, WasmBase::copyToPointerSize.
func give[T ~string | ~[]byte](v *vm, data T, ptrPtr, sizePtr uint64) Status {
	if v.rec != nil {
		v.rec.wroteBytes(ptrPtr, []byte(data))
	}
	ptr, ok := place(v, data)
	if !ok || !v.mem.WriteUint32Le(uint32(ptrPtr), ptr) || !v.mem.WriteUint32Le(uint32(sizePtr), uint32(len(data))) {
		return StatusInvalidMemoryAccess
	}
	return StatusOK
}

// place copies data into memory that the module allocates; no data is at address 0.
func place[T ~string | ~[]byte](v *vm, data T) (ptr uint32, ok bool) {
	if len(data) == 0 {
		return 0, true
	}
	if ptr, ok = v.alloc(len(data)); !ok {
		return 0, false
	}
	view, ok := v.mem.Read(ptr, uint32(len(data)))
	copy(view, data)
	return ptr, ok
}

// giveWanted is give where an address of 0 says that the module does not want that part of the answer.
func giveWanted(v *vm, data []byte, ptrPtr, sizePtr uint64) Status {
	if v.rec != nil {
		v.rec.wroteBytes(ptrPtr, data)
	}
	if uint32(ptrPtr) != 0 {
		ptr, ok := place(v, data)
		if !ok || !v.mem.WriteUint32Le(uint32(ptrPtr), ptr) {
			return StatusInvalidMemoryAccess
		}
	}
	if uint32(sizePtr) != 0 && !v.mem.WriteUint32Le(uint32(sizePtr), uint32(len(data))) {
		return StatusInvalidMemoryAccess
	}
	return StatusOK
}

// MemoryHash is the SHA-256 of the module's linear memory and of those of its globals that are numbers and change; of a
// virtual machine that has died, the zero value. Two runs with the same module, configuration, seed and calls end in the
// same hash, which so stands for everything that the plugin knows. The cost is a pass over the memory, some milliseconds.
func (w *Worker) MemoryHash() [sha256.Size]byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.vm.memoryHash()
}

func (v *vm) memoryHash() (sum [sha256.Size]byte) {
	if v.mod == nil {
		return sum
	}
	h := sha256.New()
	view, _ := v.mem.Read(0, v.mem.Size())
	h.Write(view)
	for _, g := range v.globals {
		h.Write(binary.LittleEndian.AppendUint64(nil, g.Get()))
	}
	return [sha256.Size]byte(h.Sum(nil))
}
