package hostsim

import "errors"

var errModule = errors.New("malformed module")

// wasmReader reads a module's binary. After an error it returns zeros.
type wasmReader struct {
	b   []byte
	at  int
	err error
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
