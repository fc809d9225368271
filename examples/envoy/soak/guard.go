package main

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// A worker crash needs a plugin that traps, and the shipped one is built not to. So a guard is put in front of two of its
// exports: every function of the module stays as it is, byte for byte, and three more things stand behind them, a counter
// and two functions that the exports lead to. A request with trapHeaders headers or more ends the VM before the plugin sees
// it. One with halfWayHeaders or more is the plugin's, and the VM ends in the middle of it: when the host asks for memory
// for the halfWayAllocations-th time. Of a release that is just after the pin is gone and before the replica's count is
// taken off: what a crash can do worst, and what the plugin has to repair.
const (
	trapHeaders        = 40
	halfWayHeaders     = 60
	halfWayAllocations = 3 // the headers, the shard of the pin, and the record with the counts
)

var errModule = errors.New("soak: not a module that can be guarded")

// guard returns the module with the guard in front. Errors: errModule, for what is no WebAssembly or lacks the exports.
func guard(module []byte) ([]byte, error) {
	const header = 8
	if len(module) < header || string(module[:4]) != "\x00asm" {
		return nil, errModule
	}
	type section struct {
		id   byte
		body []byte
	}
	var all []section
	at := map[byte]int{}
	for rest := module[header:]; len(rest) > 0; {
		id := rest[0]
		body, after, ok := sized(rest[1:])
		if !ok {
			return nil, errModule
		}
		if id != 0 {
			at[id] = len(all)
		}
		all = append(all, section{id, body})
		rest = after
	}
	const imports, functions, globals, exports, code = 2, 3, 6, 7, 10
	for _, id := range []byte{imports, functions, globals, exports, code} {
		if _, ok := at[id]; !ok {
			return nil, fmt.Errorf("%w: no section %d", errModule, id)
		}
	}
	imported, ok := importedFunctions(all[at[imports]].body)
	if !ok {
		return nil, fmt.Errorf("%w: imports", errModule)
	}
	types, ok := numbers(all[at[functions]].body)
	if !ok {
		return nil, fmt.Errorf("%w: functions", errModule)
	}
	counter, n := binary.Uvarint(all[at[globals]].body) // no global is imported: importedFunctions refuses that
	if n <= 0 {
		return nil, fmt.Errorf("%w: globals", errModule)
	}
	next := imported + uint64(len(types))
	newExports, old, ok := redirect(all[at[exports]].body, map[string]uint64{
		"proxy_on_request_headers": next, "proxy_on_memory_allocate": next + 1})
	onHeaders, allocate := old["proxy_on_request_headers"], old["proxy_on_memory_allocate"]
	if !ok || onHeaders < imported || allocate < imported || onHeaders >= next || allocate >= next {
		return nil, fmt.Errorf("%w: exports", errModule)
	}
	all[at[exports]].body = newExports
	all[at[functions]].body = appended(all[at[functions]].body, 2,
		binary.AppendUvarint(binary.AppendUvarint(nil, types[onHeaders-imported]), types[allocate-imported]))
	all[at[globals]].body = appended(all[at[globals]].body, 1, []byte{0x7f, 1, 0x41, 0, 0x0b}) // i32, mutable, 0
	all[at[code]].body = appended(all[at[code]].body, 2, append(guardHeaders(onHeaders, counter), guardAllocate(allocate, counter)...))
	out := append([]byte(nil), module[:header]...)
	for _, s := range all {
		out = append(append(out, s.id), withSize(s.body)...)
	}
	return out, nil
}

// Instructions, WebAssembly Core 5.4.
const (
	opUnreachable = 0x00
	opIf          = 0x04
	opEnd         = 0x0b
	opCall        = 0x10
	opLocalGet    = 0x20
	opGlobalGet   = 0x23
	opGlobalSet   = 0x24
	opI32Const    = 0x41 // constants below 64 take one byte
	opI32Eqz      = 0x45
	opI32GeU      = 0x4f
	opI32Sub      = 0x6b
	noResult      = 0x40
)

// guardHeaders is the body of a function (context, headers, end) -> action in front of onHeaders.
func guardHeaders(onHeaders, counter uint64) []byte {
	b := []byte{0, // no locals
		opLocalGet, 1, opI32Const, halfWayHeaders, opI32GeU, opIf, noResult,
		opI32Const, halfWayAllocations, opGlobalSet}
	b = binary.AppendUvarint(b, counter)
	b = append(b, opLocalGet, 0, opLocalGet, 1, opLocalGet, 2, opCall)
	b = binary.AppendUvarint(b, onHeaders)
	b = append(b, 0x0f, opEnd, // return
		opLocalGet, 1, opI32Const, trapHeaders, opI32GeU, opIf, noResult, opUnreachable, opEnd,
		opLocalGet, 0, opLocalGet, 1, opLocalGet, 2, opCall)
	return withSize(append(binary.AppendUvarint(b, onHeaders), opEnd))
}

// guardAllocate is the body of a function (size) -> address in front of allocate.
func guardAllocate(allocate, counter uint64) []byte {
	count := binary.AppendUvarint(nil, counter)
	b := append([]byte{0, opGlobalGet}, count...)
	b = append(b, opIf, noResult, opGlobalGet)
	b = append(append(b, count...), opI32Const, 1, opI32Sub, opGlobalSet)
	b = append(append(b, count...), opGlobalGet)
	b = append(append(b, count...), opI32Eqz, opIf, noResult, opUnreachable, opEnd, opEnd, opLocalGet, 0, opCall)
	return withSize(append(binary.AppendUvarint(b, allocate), opEnd))
}

// redirect makes exports of these names lead to other functions, and tells to which they led.
func redirect(body []byte, to map[string]uint64) (out []byte, old map[string]uint64, ok bool) {
	old = map[string]uint64{}
	count, n := binary.Uvarint(body)
	if n <= 0 {
		return nil, nil, false
	}
	out = append(out, body[:n]...)
	for body = body[n:]; count > 0; count-- {
		name, after, ok := sized(body)
		if !ok || len(after) < 2 {
			return nil, nil, false
		}
		index, n := binary.Uvarint(after[1:])
		if n <= 0 {
			return nil, nil, false
		}
		if f, listed := to[string(name)]; listed && after[0] == 0 {
			old[string(name)], index = index, f
		}
		out = append(append(out, withSize(name)...), after[0])
		out = binary.AppendUvarint(out, index)
		body = after[1+n:]
	}
	return out, old, len(old) == len(to)
}

// importedFunctions counts them. It refuses imports of anything else.
func importedFunctions(body []byte) (uint64, bool) {
	count, n := binary.Uvarint(body)
	if n <= 0 {
		return 0, false
	}
	body = body[n:]
	for range count {
		for range 2 { // of which module, under which name
			var ok bool
			if _, body, ok = sized(body); !ok {
				return 0, false
			}
		}
		if len(body) < 2 || body[0] != 0 {
			return 0, false
		}
		_, n := binary.Uvarint(body[1:])
		if n <= 0 {
			return 0, false
		}
		body = body[1+n:]
	}
	return count, true
}

// numbers reads a vector of numbers.
func numbers(body []byte) (list []uint64, ok bool) {
	count, n := binary.Uvarint(body)
	for body = body[max(n, 0):]; n > 0 && count > 0; count-- {
		var number uint64
		if number, n = binary.Uvarint(body); n > 0 {
			list, body = append(list, number), body[n:]
		}
	}
	return list, n > 0
}

// appended adds entries, encoded, to a section that is a vector of them.
func appended(body []byte, entries uint64, encoded []byte) []byte {
	count, n := binary.Uvarint(body)
	return append(append(binary.AppendUvarint(nil, count+entries), body[n:]...), encoded...)
}

func withSize(b []byte) []byte { return append(binary.AppendUvarint(nil, uint64(len(b))), b...) }

// sized splits off bytes that their length precedes.
func sized(b []byte) (head, rest []byte, ok bool) {
	size, n := binary.Uvarint(b)
	if n <= 0 || size > uint64(len(b)-n) {
		return nil, nil, false
	}
	return b[n : n+int(size)], b[n+int(size):], true
}
