package hostsim

import (
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/api"
)

// paramKind is what a parameter of a host function, or two, mean: the suffix of its name in hostFunc.params.
type paramKind byte

const (
	paramNumber  paramKind = 'u' // without a suffix: a number that the module passes
	paramSigned  paramKind = '-' // the same, signed
	paramBytes   paramKind = '*' // address and size of bytes that the module passes
	paramPairs   paramKind = '#' // the same, a serialised header map
	paramVectors paramKind = '[' // address and number of address-and-size pairs
	paramResult  paramKind = '=' // address of what the host writes: a number of 32 bits, or bytes
	paramWide    paramKind = ':' // address of a number of 64 bits that the host writes
	paramGiven   paramKind = '>' // two addresses, for those of bytes that the host allocates
	paramWanted  paramKind = '?' // the same, and an address of 0 says that the module does not want it
	paramMap     paramKind = '}' // the same, a serialised header map
	paramPointer paramKind = '!' // an address that means nothing outside the module
)

// param is one named argument of a host function.
type param struct {
	name string
	kind paramKind
	at   int  // index of its first wasm parameter
	wide bool // of 64 bits
}

// parseParams reads hostFunc.params.
func parseParams(text string) []param {
	var out []param
	at := 0
	for field := range strings.FieldsSeq(text) {
		p := param{name: field, kind: paramNumber, at: at}
		if last := len(field) - 1; strings.IndexByte("-*#[=:>?}!", field[last]) >= 0 {
			p.name, p.kind = field[:last], paramKind(field[last])
		}
		p.name, p.wide = strings.CutSuffix(p.name, "64")
		out = append(out, p)
		at += p.width()
	}
	return out
}

// unnamedParams are the parameters a0, a1 and so on of a function that no table has, recorded as the numbers that they are.
func unnamedParams(types []api.ValueType) []param {
	out := make([]param, len(types))
	for i, t := range types {
		out[i] = param{name: "a" + strconv.Itoa(i), kind: paramNumber, at: i, wide: t == api.ValueTypeI64 || t == api.ValueTypeF64}
	}
	return out
}

// width is the number of wasm parameters.
func (p *param) width() int {
	if strings.IndexByte("*#[>?}", byte(p.kind)) >= 0 {
		return 2
	}
	return 1
}

// written is true for what the host writes.
func (p *param) written() bool { return strings.IndexByte("=:>?}", byte(p.kind)) >= 0 }

// appendArgs writes what the module passes: numbers, and bytes by content. Addresses are left out: they differ between
// builds of one plugin.
func appendArgs(b []byte, v *vm, params []param, a []uint64, r *redaction) []byte {
	b = append(b, '{')
	name := r.headerName(v, params, a)
	for i := range params {
		p := &params[i]
		if p.written() || p.kind == paramPointer {
			continue
		}
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), p.name...), '"', ':')
		switch p.kind {
		case paramNumber, paramSigned:
			b = p.appendNumber(b, a[p.at])
		case paramVectors:
			data, ok := v.readVectors(a[p.at], a[p.at+1])
			b = appendMemory(b, data, ok, r)
		default:
			data, ok := v.readArg(a[p.at], a[p.at+1])
			switch {
			case ok && p.kind == paramPairs:
				b = appendPairs(b, data, r)
			case p.name == "value":
				if ok {
					b = appendText(b, r.value(name, data))
				} else {
					b = appendMemory(b, nil, false, nil)
				}
			default:
				b = appendMemory(b, data, ok, r)
			}
		}
	}
	return append(b, '}')
}

func (p *param) appendNumber(b []byte, n uint64) []byte {
	switch {
	case p.kind == paramSigned && p.wide:
		return strconv.AppendInt(b, int64(n), 10)
	case p.kind == paramSigned:
		return strconv.AppendInt(b, int64(int32(uint32(n))), 10)
	case p.wide:
		return strconv.AppendUint(b, n, 10)
	}
	return strconv.AppendUint(b, uint64(uint32(n)), 10)
}

// appendMemory writes bytes of the module, or that they lie outside its memory.
func appendMemory(b, data []byte, ok bool, r *redaction) []byte {
	if !ok {
		return append(b, `{"outside_memory":true}`...)
	}
	return appendText(b, r.text(data))
}

// appendPairs writes a serialised header map.
func appendPairs(b, data []byte, r *redaction) []byte {
	if h, ok := splitPairs(data); ok {
		return appendHeaders(b, r.headers(h))
	}
	return appendText(b, r.text(data))
}

// readArg is read for a module that may still be starting.
func (v *vm) readArg(ptr, size uint64) ([]byte, bool) {
	if v.mem == nil {
		return nil, uint32(size) == 0
	}
	return v.read(ptr, size)
}

// maxVectors bounds what one WASI write puts into a recording, in bytes.
const maxVectors = 16 << 20

// readVectors joins what the vectors of a WASI write name.
func (v *vm) readVectors(at, count uint64) ([]byte, bool) {
	if v.mem == nil {
		return nil, false
	}
	var out []byte
	for i := range uint64(uint32(count)) {
		ptr, ok1 := v.mem.ReadUint32Le(uint32(at) + uint32(8*i))
		size, ok2 := v.mem.ReadUint32Le(uint32(at) + uint32(8*i) + 4)
		if !ok1 || !ok2 {
			return nil, false
		}
		part, ok := v.mem.Read(ptr, size)
		if !ok {
			return nil, false
		}
		if out = append(out, part...); len(out) > maxVectors {
			return nil, false // vectors may name the same bytes many times
		}
	}
	return out, true
}
