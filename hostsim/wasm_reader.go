package hostsim

import "errors"

var errModule = errors.New("malformed module")

// wasmHeader begins every module: its magic number and its version.
const wasmHeader = "\x00asm\x01\x00\x00\x00"

// Sections of a module, and what an import or export is. Source: WebAssembly core specification 2.0, "Binary Format",
// "Modules".
const (
	sectionImport = 2
	sectionGlobal = 6
	sectionExport = 7

	externFunction = 0
	externTable    = 1
	externMemory   = 2
	externGlobal   = 3
)

// wasmReader reads a module's binary. After an error it returns zeros.
type wasmReader struct {
	b   []byte
	at  int
	err error
}

// more is true until the end or an error.
func (r *wasmReader) more() bool { return r.at < len(r.b) && r.err == nil }

// section returns the next section.
func (r *wasmReader) section() (id byte, content *wasmReader) {
	id = r.byte()
	return id, &wasmReader{b: r.bytes(r.u32())}
}

func (r *wasmReader) byte() byte {
	if b := r.bytes(1); b != nil {
		return b[0]
	}
	return 0
}

// bytes returns the next n bytes, or nil past the end.
func (r *wasmReader) bytes(n uint32) []byte {
	if r.err != nil || uint64(n) > uint64(len(r.b)-r.at) {
		r.err = errModule
		return nil
	}
	b := r.b[r.at : r.at+int(n)]
	r.at += int(n)
	return b
}

// u32 reads an unsigned number in LEB128.
func (r *wasmReader) u32() (n uint32) {
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte()
		n |= uint32(b&0x7f) << shift
		if b < 0x80 {
			return n
		}
	}
	r.err = errModule
	return 0
}

// skipLEB skips a number of any sign and up to 64 bits.
func (r *wasmReader) skipLEB() {
	for range 10 {
		if r.byte() < 0x80 {
			return
		}
	}
	r.err = errModule
}

// limits skips those of a table or memory.
func (r *wasmReader) limits() {
	const hasMax = 1
	if r.byte()&hasMax != 0 {
		r.u32()
	}
	r.u32()
}

// constant skips a constant expression.
func (r *wasmReader) constant() {
	for r.err == nil {
		switch r.byte() {
		case 0x0b: // end
			return
		case 0x41, 0x42, 0x23, 0xd2: // i32.const, i64.const, global.get, ref.func
			r.skipLEB()
		case 0x43: // f32.const
			r.bytes(4)
		case 0x44: // f64.const
			r.bytes(8)
		case 0xd0: // ref.null
			r.byte()
		case 0xfd: // v128.const
			r.u32()
			r.bytes(16)
		default:
			r.err = errModule
		}
	}
}

// uleb writes an unsigned number in LEB128.
func uleb(n int) []byte {
	var out []byte
	for ; n >= 0x80; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(out, byte(n))
}
