//go:build wasip1

package main

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

var (
	lastCAS uint32
	metrics = map[string]uint32{}
	waste   [][]byte
)

func num(n uint32) string { return strconv.FormatUint(uint64(n), 10) }

func number(s string) uint32 {
	n, err := strconv.ParseInt(s, 0, 64)
	if err != nil {
		panic("probe: not a number: " + s)
	}
	return uint32(n)
}

// text undoes the spelling of bytes that a line cannot hold: ~ is the empty string, % a space, $ a zero byte.
func text(s string) string {
	if s == "~" {
		return ""
	}
	return strings.NewReplacer("%", " ", "$", "\x00").Replace(s)
}

func result(status uint32, value string) string {
	if status != 0 {
		return num(status)
	}
	return strings.TrimSuffix("0 "+value, " ")
}

// do carries out one operation.
func do(op string, a []string) string {
	for i := range a {
		a[i] = text(a[i])
	}
	if strings.HasPrefix(op, "m") && metric[op] != nil {
		return metric[op](a)
	}
	f := operations[op]
	if f == nil {
		panic("probe: no operation " + op)
	}
	return f(a)
}

var operations map[string]func(a []string) string

func init() {
	operations = map[string]func(a []string) string{
		"log":      func(a []string) string { return num(logAt(number(a[0]), strings.Join(a[1:], " "))) },
		"loglevel": func([]string) string { var n uint32; st := hLogLevel(ptr(&n)); return result(st, num(n)) },
		"get": func(a []string) string {
			return got(func(p, n ptr) uint32 { return hGetHeader(number(a[0]), str(a[1]), size(a[1]), p, n) })
		},
		"add": func(a []string) string {
			return num(hAddHeader(number(a[0]), str(a[1]), size(a[1]), str(a[2]), size(a[2])))
		},
		"replace": func(a []string) string {
			return num(hReplaceHeader(number(a[0]), str(a[1]), size(a[1]), str(a[2]), size(a[2])))
		},
		"remove":   func(a []string) string { return num(hRemoveHeader(number(a[0]), str(a[1]), size(a[1]))) },
		"pairs":    func(a []string) string { return pairs(number(a[0])) },
		"setpairs": func(a []string) string { return setPairs(number(a[0]), a[1:]) },
		"mapsize": func(a []string) string {
			var n uint32
			st := hHeaderSize(number(a[0]), ptr(&n))
			return result(st, num(n))
		},
		"buf": func(a []string) string {
			s, st := buffer(number(a[0]), number(a[1]), number(a[2]))
			return result(st, s)
		},
		"bufstat": func(a []string) string {
			var n, flags uint32
			st := hBufferStatus(number(a[0]), ptr(&n), ptr(&flags))
			return result(st, num(n))
		},
		"bufset": func(a []string) string {
			return num(hSetBuffer(number(a[0]), number(a[1]), number(a[2]), str(a[3]), size(a[3])))
		},
		"prop": func(a []string) string {
			return got(func(p, n ptr) uint32 { return hGetProperty(str(a[0]), size(a[0]), p, n) })
		},
		"propint": func(a []string) string {
			s := got(func(p, n ptr) uint32 { return hGetProperty(str(a[0]), size(a[0]), p, n) })
			if len(s) != 10 {
				return s
			}
			return "0 " + strconv.FormatInt(int64(binary.LittleEndian.Uint64([]byte(s[2:]))), 10)
		},
		"setprop": func(a []string) string { return num(hSetProperty(str(a[0]), size(a[0]), str(a[1]), size(a[1]))) },
		"sdget": func(a []string) string {
			return got(func(p, n ptr) uint32 { return hGetShared(str(a[0]), size(a[0]), p, n, ptr(&lastCAS)) })
		},
		"sdset": func(a []string) string {
			cas := lastCAS
			if a[2] != "last" {
				cas = number(a[2])
			}
			return num(hSetShared(str(a[0]), size(a[0]), str(a[1]), size(a[1]), cas))
		},
		"sdadd": func(a []string) string { return addShared(a[0]) },
		"sdinc": func(a []string) string { return incrementShared(a[0]) },
		"reply": func(a []string) string {
			h := encode(a[2:])
			return num(hSendLocal(number(a[0]), nil, 0, str(a[1]), size(a[1]), str(h), size(h), 0xffffffff))
		},
		"httpcall": func(a []string) string {
			var id uint32
			h := encode(a[3:])
			st := hHTTPCall(str(a[0]), size(a[0]), str(h), size(h), str(a[2]), size(a[2]), nil, 0, number(a[1]), ptr(&id))
			return result(st, num(id))
		},
		"continue":  func(a []string) string { return num(hContinue(number(a[0]))) },
		"close":     func(a []string) string { return num(hClose(number(a[0]))) },
		"tickevery": func(a []string) string { return num(hSetTick(number(a[0]))) },
		"effective": func(a []string) string { return num(hEffective(number(a[0]))) },
		"finish":    func([]string) string { return num(hDone()) },
		"hostnow": func([]string) string {
			var t uint64
			st := hNow(ptr(&t))
			return result(st, time.Unix(0, int64(t)).UTC().Format(time.RFC3339Nano))
		},
		"gonow":  func([]string) string { return "0 " + time.Now().UTC().Format(time.RFC3339Nano) },
		"sleep":  func(a []string) string { time.Sleep(time.Duration(number(a[0])) * time.Millisecond); return "0" },
		"random": func(a []string) string { b := make([]byte, 8); rand.Read(b); return "0 " + hex.EncodeToString(b) },
		"print":  func(a []string) string { println(strings.Join(a, " ")); return "0" },
		"queue":  func(a []string) string { var id uint32; return num(hRegisterQueue(str(a[0]), size(a[0]), ptr(&id))) },
		"panic":  func(a []string) string { panic(strings.Join(a, " ")) },
		"badptr": func([]string) string { return num(hLog(2, ptr(uintptr(0xfffffff0)), 64)) },
		"garbage": func(a []string) string {
			for range number(a[0]) {
				waste = append(waste[:0], make([]byte, number(a[1])))
			}
			return "0"
		},
	}
}

// addShared counts up a number in shared data by compare-and-swap, creating it if absent.
func addShared(key string) string {
	for tries := 1; ; tries++ {
		var cas uint32
		s := got(func(p, n ptr) uint32 { return hGetShared(str(key), size(key), p, n, ptr(&cas)) })
		value, found := strings.CutPrefix(s, "0 ")
		n := uint64(0)
		if found {
			n, _ = strconv.ParseUint(value, 10, 64)
		} else {
			cas = 0xffffffff // an absent key takes any number; one that has appeared meanwhile does not take this
		}
		next := strconv.FormatUint(n+1, 10)
		if hSetShared(str(key), size(key), str(next), size(next), cas) == 0 {
			return "0 " + strconv.Itoa(tries)
		}
	}
}

// incrementShared counts up without compare-and-swap: of two that meet, one may be lost.
func incrementShared(key string) string {
	s := got(func(p, n ptr) uint32 { return hGetShared(str(key), size(key), p, n, ptr(&lastCAS)) })
	n := uint64(0)
	if value, found := strings.CutPrefix(s, "0 "); found {
		n, _ = strconv.ParseUint(value, 10, 64)
	}
	next := strconv.FormatUint(n+1, 10)
	return num(hSetShared(str(key), size(key), str(next), size(next), 0))
}

var metric = map[string]func(a []string) string{
	"mdef": func(a []string) string {
		var id uint32
		st := hDefineMetric(number(a[0]), str(a[1]), size(a[1]), ptr(&id))
		metrics[a[1]] = id
		return num(st)
	},
	"minc": func(a []string) string {
		n, _ := strconv.ParseInt(a[1], 10, 64)
		return num(hIncMetric(metrics[a[0]], n))
	},
	"mrec": func(a []string) string {
		n, _ := strconv.ParseInt(a[1], 10, 64)
		return num(hRecMetric(metrics[a[0]], uint64(n)))
	},
	"mget": func(a []string) string {
		var v uint64
		st := hGetMetric(metrics[a[0]], ptr(&v))
		return result(st, strconv.FormatUint(v, 10))
	},
}

// got runs a call that answers by address and size.
func got(call func(p, n ptr) uint32) string {
	var p, n uint32 = 0xdead, 0xdead
	st := call(ptr(&p), ptr(&n))
	return result(st, view(p, n, st))
}

func view(p, n, status uint32) string {
	if status != 0 || n == 0 {
		if status == 0 && p != 0 {
			return "(empty but at an address)"
		}
		return ""
	}
	return string(unsafe.Slice((*byte)(ptr(uintptr(p))), n))
}

func buffer(kind, start, length uint32) (string, uint32) {
	var p, n uint32
	st := hGetBuffer(kind, start, length, ptr(&p), ptr(&n))
	return view(p, n, st), st
}

func logAt(level uint32, msg string) uint32 { return hLog(level, str(msg), size(msg)) }

// encode serialises name=value arguments.
func encode(args []string) string {
	if len(args) == 0 {
		return ""
	}
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(args)))
	var tail []byte
	for _, a := range args {
		name, value, _ := strings.Cut(a, "=")
		b = binary.LittleEndian.AppendUint32(b, uint32(len(name)))
		b = binary.LittleEndian.AppendUint32(b, uint32(len(value)))
		tail = append(append(append(append(tail, name...), 0), value...), 0)
	}
	return string(append(b, tail...))
}

func setPairs(kind uint32, args []string) string {
	b := encode(args)
	return num(hSetPairs(kind, str(b), size(b)))
}

// pairs shows a whole map as name=value, name=value.
func pairs(kind uint32) string {
	var p, n uint32
	st := hGetPairs(kind, ptr(&p), ptr(&n))
	b := []byte(view(p, n, st))
	if st != 0 || len(b) == 0 {
		return result(st, "")
	}
	count := int(binary.LittleEndian.Uint32(b))
	sizes, rest := b[4:4+8*count], b[4+8*count:]
	var out []string
	for i := range count {
		name, value := binary.LittleEndian.Uint32(sizes[8*i:]), binary.LittleEndian.Uint32(sizes[8*i+4:])
		out = append(out, string(rest[:name])+"="+string(rest[name+1:name+1+value]))
		rest = rest[name+1+value+1:]
	}
	return "0 " + strings.Join(out, ", ")
}
