package hostsim

import (
	"encoding/binary"
	"slices"
	"sync"

	"github.com/tetratelabs/wazero/api"
)

// The script guest makes in each callback the host calls that its memory lists, which a test writes there: so any call
// with any arguments can be made in any phase without building a module for it.
//
//	scriptResult  what the last call answered
//	scriptAnswer  what callbacks return
//	scriptMalloc  what malloc returns
//	scriptNested  not 0: malloc sets it to 0 and makes the calls of mallocScript
//	callScript, mallocScript  records of scriptRecord bytes: the function's number, 0 for the end, and from byte 8 on the
//	              arguments, 8 bytes each
const (
	scriptResult = 12
	scriptAnswer = 16
	scriptMalloc = 20
	scriptNested = 24
	mallocScript = 1024
	callScript   = 8192
	scriptRecord = 8 + 12*8
	scriptFree   = 32768 // from here on the memory is free; it has 64 KiB, 1 MiB at most
)

// scriptFuncs are the functions that the guest imports. A record's number is the index here plus 1; one more grows the
// memory by a page.
var scriptFuncs = sync.OnceValue(func() []hostFunc {
	return slices.Concat(envFuncs, wasiFuncs)
})

// scriptIndex finds a function's number.
func scriptIndex(name string) uint32 {
	for i, f := range scriptFuncs() {
		if f.name == name {
			return uint32(i) + 1
		}
	}
	panic("no host function " + name)
}

var scriptGuest = sync.OnceValue(func() []byte {
	m := &wasmModule{memory: []byte{1, 1, 16}}
	for i, f := range scriptFuncs() {
		params, results := f.signature()
		module := moduleEnv
		if i >= len(envFuncs) {
			module = moduleWASI
		}
		m.imports = append(m.imports, wasmImport{module: module, name: f.name, params: params, results: results})
	}
	dispatch := m.add("dispatch", "ii:", scriptDispatch())
	load := func(address uint32) []byte { return append(i32s(address), 0x28, 2, 0) }
	run := m.add("run", "i:", []byte{0x03, 0x40}, // loop
		[]byte{0x20, 0, 0x28, 2, 0, 0x45, 0x04, 0x40, 0x0f, 0x0b}, // if p[0] == 0 return
		[]byte{0x20, 0, 0x28, 2, 0, 0x20, 0}, i32s(8), []byte{0x6a}, callOf(dispatch),
		[]byte{0x20, 0}, i32s(scriptRecord), []byte{0x6a, 0x21, 0}, // p += scriptRecord
		[]byte{0x0c, 0, 0x0b})
	m.add("malloc", "i:i", load(scriptNested), []byte{0x04, 0x40},
		i32s(scriptNested, 0), []byte{0x36, 2, 0}, i32s(mallocScript), callOf(run), []byte{0x0b}, load(scriptMalloc))
	m.add("proxy_abi_version_0_2_1", ":")
	for name, signature := range callbackSignatures {
		switch {
		case name == "malloc" || name == "proxy_on_memory_allocate" || name == "main" || name == "_start" || name == "_initialize":
		case signature[len(signature)-1] == 'i':
			m.add(name, signature, i32s(callScript), callOf(run), load(scriptAnswer))
		default:
			m.add(name, signature, i32s(callScript), callOf(run))
		}
	}
	slices.SortFunc(m.funcs[4:], func(a, b wasmFunc) int { return compareNames(a.name, b.name) })
	m.data = "\x01" // scriptAnswer: vm_start and configure agree
	return m.bytes()
})

func compareNames(a, b string) int { return slices.Compare([]byte(a), []byte(b)) }

// scriptDispatch is the body of dispatch(function, address of the arguments).
func scriptDispatch() (body []byte) {
	number := uint32(0)
	on := func(call ...[]byte) {
		number++
		body = slices.Concat(body, []byte{0x20, 0}, i32s(number), []byte{0x46, 0x04, 0x40}, slices.Concat(call...), []byte{0x0f, 0x0b})
	}
	for i, f := range scriptFuncs() {
		var call []byte
		params, _ := f.signature()
		for k, p := range params {
			load := byte(0x28)
			if p == api.ValueTypeI64 {
				load = 0x29
			}
			call = slices.Concat(call, []byte{0x20, 1, load, 0}, uleb(8*k))
		}
		call = append(call, callOf(i)...)
		if !f.void {
			call = slices.Concat(i32s(scriptResult), call, []byte{0x36, 2, 0})
		}
		on(call)
	}
	on(growByOne, drop)
	return body
}

// scriptCall is one record.
type scriptCall struct {
	number uint32
	args   []uint64
}

// encodeScript writes records, 60 at most, and their end.
func encodeScript(calls []scriptCall) []byte {
	var out []byte
	for _, c := range calls {
		record := make([]byte, scriptRecord)
		binary.LittleEndian.PutUint32(record, c.number)
		for i, a := range c.args {
			binary.LittleEndian.PutUint64(record[8+8*i:], a)
		}
		out = append(out, record...)
	}
	return append(out, 0, 0, 0, 0)
}

// script writes the guest's script on a worker whose virtual machine lives.
func (h *Host) script(worker int, answer uint32, calls []scriptCall) {
	w := h.workers[worker]
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.vm.dead == nil {
		w.vm.mem.WriteUint32Le(scriptAnswer, answer)
		w.vm.mem.WriteUint32Le(scriptMalloc, scriptFree)
		w.vm.mem.WriteUint32Le(scriptNested, 0)
		w.vm.mem.Write(callScript, encodeScript(calls))
	}
}

// result is what the guest's last call answered.
func (h *Host) result(worker int) Status {
	w := h.workers[worker]
	w.mu.Lock()
	defer w.mu.Unlock()
	status, _ := w.vm.mem.ReadUint32Le(scriptResult)
	return Status(status)
}

// mallocs writes what malloc answers and does the next time.
func (h *Host) mallocs(worker int, answer uint32, calls []scriptCall) {
	w := h.workers[worker]
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.vm.dead == nil {
		w.vm.mem.WriteUint32Le(scriptMalloc, answer)
		w.vm.mem.WriteUint32Le(scriptNested, uint32(len(calls)))
		w.vm.mem.Write(mallocScript, encodeScript(calls))
	}
}
