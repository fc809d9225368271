package abi

// arenaSize holds what one callback of a sticky turn is given many times over:
// a session id, a path, a shard of about 1 KB.
const arenaSize = 64 << 10

// arena is the memory that the host asks for and then writes to. The host alone
// knows the address, so the arena keeps it reachable. Everything is given back at
// once, when the next callback begins.
type arena struct {
	block [arenaSize]byte
	used  int
	large [][]byte
}

// alloc returns n bytes, 8-byte aligned. A size of zero is legal to be asked
// for and gets a valid address.
func (a *arena) alloc(n uint32) *byte {
	size := (int(max(n, 1)) + 7) &^ 7
	if size > len(a.block)-a.used {
		b := make([]byte, size)
		a.large = append(a.large, b)
		return &b[0]
	}
	p := &a.block[a.used]
	a.used += size
	return p
}

func (a *arena) reset() {
	a.used = 0
	if len(a.large) > 0 {
		clear(a.large)
		a.large = a.large[:0]
	}
}
