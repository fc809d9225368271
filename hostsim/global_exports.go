package hostsim

import (
	"errors"
	"fmt"
	"slices"
)

// globalExport is the name under which a module's global is exported for snapshots.
func globalExport(i int) string { return fmt.Sprint("hostsim.global.", i) }

// exposeGlobals adds an export for each mutable number among a module's own globals, which wazero else lets nobody set,
// and returns their indexes. A module that it cannot read comes back as it was, for the compiler to judge.
func exposeGlobals(wasm []byte) (exposed []byte, globals []int, err error) {
	if len(wasm) < 8 {
		return wasm, nil, errModule
	}
	exports := -1
	var out []byte
	r := &wasmReader{b: wasm, at: 8}
	out = append(out, wasm[:8]...)
	for r.at < len(r.b) && r.err == nil {
		start := r.at
		id := r.byte()
		content := r.bytes(r.u32())
		section := &wasmReader{b: content}
		switch id {
		case sectionGlobal:
			globals = section.mutableGlobals()
		case sectionExport:
			exports = len(out)
			content = section.withExports(globals)
			out = append(append(append(out, id), uleb(len(content))...), content...)
			r.err = errors.Join(r.err, section.err)
			continue
		}
		r.err = errors.Join(r.err, section.err)
		out = append(out, wasm[start:r.at]...)
	}
	switch {
	case r.err != nil:
		return wasm, nil, r.err
	case exports < 0 || len(globals) == 0:
		return wasm, nil, nil
	}
	return out, globals, nil
}

// Sections of a module, and the kind of an export. Source: WebAssembly core specification 2.0, "Binary Format", "Modules".
const (
	sectionGlobal = 6
	sectionExport = 7
	externGlobal  = 3
)

// mutableGlobals returns the indexes of those that are numbers. A module that imports globals, which come before its own,
// loads nowhere.
func (r *wasmReader) mutableGlobals() (mutable []int) {
	const v128 = 0x7b
	for i := range r.u32() {
		kind, changes := r.byte(), r.byte()
		r.constant()
		if r.err != nil {
			break
		}
		if changes == 1 && kind > v128 {
			mutable = append(mutable, int(i))
		}
	}
	return mutable
}

// withExports returns an export section with the globals added.
func (r *wasmReader) withExports(globals []int) []byte {
	n := r.u32()
	out := slices.Concat(uleb(int(n)+len(globals)), r.b[min(r.at, len(r.b)):])
	for _, i := range globals {
		name := globalExport(i)
		out = slices.Concat(out, uleb(len(name)), []byte(name), []byte{externGlobal}, uleb(i))
	}
	return out
}
