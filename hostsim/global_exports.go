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
	if len(wasm) < len(wasmHeader) {
		return wasm, nil, errModule
	}
	exports := -1
	out := slices.Clone(wasm[:len(wasmHeader)])
	r := &wasmReader{b: wasm, at: len(wasmHeader)}
	for r.more() {
		start := r.at
		id, content := r.section()
		switch id {
		case sectionGlobal:
			globals = content.mutableGlobals()
		case sectionExport:
			exports = len(out)
			added := content.withExports(globals)
			out = slices.Concat(out, []byte{id}, uleb(len(added)), added)
		}
		r.err = errors.Join(r.err, content.err)
		if id != sectionExport {
			out = append(out, wasm[start:r.at]...)
		}
	}
	switch {
	case r.err != nil:
		return wasm, nil, r.err
	case exports < 0 || len(globals) == 0:
		return wasm, nil, nil
	}
	return out, globals, nil
}

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
