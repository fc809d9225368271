package hostsim

import (
	"bytes"
	"maps"
	"slices"
)

// vmSnapshot is one virtual machine between two callbacks.
type vmSnapshot struct {
	state   vm     // a copy, in which only what has no pointer to the instance counts
	rng     []byte // state of the random numbers
	roots   []root // by place in state.roots
	answers map[*HTTPCall]*dueResponse
	memory  []byte
	globals []uint64
}

func (v *vm) snapshot() *vmSnapshot {
	s := &vmSnapshot{state: *v, answers: map[*HTTPCall]*dueResponse{}}
	s.state.contexts, s.state.roots = maps.Clone(v.contexts), slices.Clone(v.roots)
	s.rng, _ = v.rng.MarshalBinary() // never fails
	for _, r := range v.roots {
		saved := *r
		saved.calls = slices.Clone(r.calls)
		s.roots = append(s.roots, saved)
		for _, c := range r.calls {
			s.answers[c] = c.answer.Load()
		}
	}
	if v.mod != nil {
		view, _ := v.mem.Read(0, v.mem.Size())
		s.memory = slices.Clone(view)
		for _, g := range v.globals {
			s.globals = append(s.globals, g.Get())
		}
	}
	v.at = s
	return s
}

// restore sets the virtual machine back. Its counters go on.
func (v *vm) restore(s *vmSnapshot) error {
	for _, r := range v.roots {
		r.dropGRPC()
	}
	if v.at != s && s.state.dead == nil {
		if err := v.restoreMemory(s); err != nil {
			return err
		}
	}
	now := *v
	*v = s.state
	v.mod, v.mem, v.globals = now.mod, now.mem, now.globals
	v.callbacks, v.allocator, v.all = now.callbacks, now.allocator, now.all
	v.hostCalls, v.unimplemented, v.answers = now.hostCalls, now.unimplemented, now.answers
	v.contexts, v.roots = maps.Clone(s.state.contexts), slices.Clone(s.state.roots)
	v.pending, v.at = nil, s
	for i, r := range v.roots {
		*r = s.roots[i]
		r.calls = slices.Clone(r.calls)
	}
	for c, answer := range s.answers {
		c.answer.Store(answer)
	}
	return v.rng.UnmarshalBinary(s.rng)
}

// restoreMemory sets back memory and globals, in a new instance where the old one is gone or has grown.
func (v *vm) restoreMemory(s *vmSnapshot) error {
	if v.mod == nil || int(v.mem.Size()) != len(s.memory) {
		calls := v.all
		v.close()
		v.starved = nil
		if err := v.instantiate(); err != nil {
			return err
		}
		for i, e := range v.all {
			e.calls = calls[i].calls
		}
		if _, ok := v.mem.Grow(uint32(len(s.memory)-int(v.mem.Size())) / pageSize); !ok {
			return v.refused
		}
	}
	memory, _ := v.mem.Read(0, v.mem.Size())
	copyDifferent(memory, s.memory)
	for i, g := range v.globals {
		g.Set(s.globals[i])
	}
	return nil
}

// copyDifferent is copy that writes only pieces that differ: most do not, and reading is cheaper.
func copyDifferent(dst, src []byte) {
	const piece = 4 << 10
	for at := 0; at < len(src); at += piece {
		end := min(at+piece, len(src))
		if !bytes.Equal(dst[at:end], src[at:end]) {
			copy(dst[at:end], src[at:end])
		}
	}
}
