package hostsim

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/sys"
)

// vmRecord writes the lines of one virtual machine, whose worker's lock guards it.
//
// Lines stand in the order in which a replay needs them: the callback, each host call that it makes once that has been
// answered, the callback's end. What runs inside a host call, such as the calls of the module's allocator, stands in that
// call's own line, under "during".
type vmRecord struct {
	rec        *Recorder
	v          *vm
	id         int
	generation uint64
	calls      []*recordedCall // under way, outermost first
	spare      []*recordedCall
	buf        []byte

	callbacks, hostCalls uint64 // nested ones, not yet in the totals
}

// recordedCall is one host call under way.
type recordedCall struct {
	binding *binding
	args    []uint64
	head    []byte // the line up to the status
	outs    []recordedOut
	values  []byte
	during  []byte
	skipped bool   // a fault took the place of the allocator
	header  string // the header that it is about, where that is to be hidden
}

// recordedOut is what the host wrote for one parameter: values[from:to].
type recordedOut struct {
	param    int
	from, to int
}

// recordVM begins the lines of a new virtual machine, or returns nil where nothing is recorded.
func (h *Host) recordVM(v *vm, generation uint64) *vmRecord {
	rec := h.config.Recorder
	if rec == nil {
		return nil
	}
	rec.mu.Lock()
	defer rec.mu.Unlock()
	r := &vmRecord{rec: rec, v: v, id: rec.vms, generation: generation}
	rec.vms++
	rec.totals.VMs = rec.vms
	rec.write(fmt.Appendf(nil, `{"kind":"vm","vm":%d,"worker":%d,"generation":%d,"mono":%d}`,
		r.id, v.worker, generation, h.clock.Monotonic()))
	return r
}

// endRecord ends the lines of a virtual machine, once.
func (v *vm) endRecord() {
	if v.rec != nil {
		v.rec.close()
		v.rec = nil
	}
}

// begin writes a callback and its arguments.
func (r *vmRecord) begin(e *export, args []uint64) {
	b := append(r.buf[:0], `{"kind":"callback","vm":`...)
	b = strconv.AppendInt(b, int64(r.id), 10)
	b = append(b, `,"worker":`...)
	b = strconv.AppendInt(b, int64(r.v.worker), 10)
	b = append(b, `,"generation":`...)
	b = strconv.AppendUint(b, r.generation, 10)
	b = r.appendWhere(b)
	b = append(append(append(b, `,"name":"`...), e.name...), `","args":[`...)
	for i := range min(len(args), e.params) {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendUint(b, uint64(uint32(args[i])), 10)
	}
	r.emit(append(b, `]}`...), 1, 0)
}

// appendWhere writes the context and the time.
func (r *vmRecord) appendWhere(b []byte) []byte {
	if c := r.v.target(); c != nil {
		b = strconv.AppendUint(append(b, `,"context":`...), uint64(c.id), 10)
	}
	return strconv.AppendInt(append(b, `,"mono":`...), int64(r.v.host.clock.Monotonic()), 10)
}

// end writes what the callback returned, or that it trapped.
func (r *vmRecord) end(e *export, result uint64, err error) {
	b := append(r.buf[:0], `{"kind":"end","vm":`...)
	b = strconv.AppendInt(b, int64(r.id), 10)
	switch {
	case err != nil:
		b = appendText(append(b, `,"trap":`...), trapText(err.Error()))
		if late(err) {
			b = append(b, `,"deadline":true`...)
		}
	case e.results > 0:
		b = strconv.AppendUint(append(b, `,"result":`...), uint64(uint32(result)), 10)
	}
	r.emit(append(b, '}'), 0, 0)
}

// late is true for wazero's error about the end of a call's context.
func late(err error) bool {
	var exit *sys.ExitError
	return errors.As(err, &exit) && exit.ExitCode() == sys.ExitCodeDeadlineExceeded
}

// trapText is an error without wazero's stack of the module's functions.
func trapText(s string) string {
	first, _, _ := strings.Cut(s, "\n")
	return first
}

// emit writes a line, or a part of the line of the host call under way. It keeps the buffer.
func (r *vmRecord) emit(b []byte, callbacks, hostCalls uint64) {
	r.buf = b
	if n := len(r.calls); n > 0 {
		outer := r.calls[n-1]
		if len(outer.during) > 0 {
			outer.during = append(outer.during, ',')
		}
		outer.during = append(outer.during, b...)
		r.callbacks, r.hostCalls = r.callbacks+callbacks, r.hostCalls+hostCalls
		return
	}
	r.rec.put(b, r.callbacks+callbacks, r.hostCalls+hostCalls)
	r.callbacks, r.hostCalls = 0, 0
}

// call makes a host call and writes it.
func (r *vmRecord) call(b *binding, stack []uint64) {
	r.enter(b, stack)
	done := false
	defer func() {
		if !done { // a trap; Goexit of a test's hook comes here too, with nil
			p := recover()
			r.leave(0, trapText(fmt.Sprint(p)))
			if p != nil {
				panic(p)
			}
		}
	}()
	b.perform(r.v, stack)
	done = true
	var answer uint64
	if !b.fn.void {
		answer = stack[0]
	}
	r.leave(uint32(answer), "")
}

// skipped notes that a fault took the place of the allocator. Other exports that do not run leave no line.
func (r *vmRecord) skipped(e *export) {
	if r != nil && e == r.v.allocator && len(r.calls) > 0 {
		r.calls[len(r.calls)-1].skipped = true
	}
}

// starved writes that a fault kept the memory from growing to size bytes. That a limit did follows from the header.
func (r *vmRecord) starved(size uint64) {
	if r == nil {
		return
	}
	b := strconv.AppendInt(append(r.buf[:0], `{"kind":"call","vm":`...), int64(r.id), 10)
	b = append(b, `,"name":"`+memoryGrow+`","args":{"bytes":`...)
	r.emit(append(strconv.AppendUint(b, size, 10), `}}`...), 0, 1)
}

// memoryGrow is the instruction that a fault refuses, which stands among the host calls.
const memoryGrow = "memory.grow"

// enter takes down a host call's arguments: afterwards its answer stands in their place.
func (r *vmRecord) enter(b *binding, stack []uint64) {
	var c *recordedCall
	if n := len(r.spare); n > 0 {
		c, r.spare = r.spare[n-1], r.spare[:n-1]
	} else {
		c = &recordedCall{}
	}
	c.binding = b
	c.args = append(c.args[:0], stack...)
	c.skipped = false
	c.outs, c.values, c.during = c.outs[:0], c.values[:0], c.during[:0]
	c.header = r.rec.redaction.headerName(r.v, b.params, c.args)
	h := append(c.head[:0], `{"kind":"call","vm":`...)
	h = r.appendWhere(strconv.AppendInt(h, int64(r.id), 10))
	h = append(append(append(h, `,"name":"`...), b.label...), `","args":`...)
	c.head = appendArgs(h, r.v, b.params, c.args, r.rec.redaction)
	r.calls = append(r.calls, c)
}

// leave writes the host call with its answer.
func (r *vmRecord) leave(answer uint32, trap string) {
	c := r.calls[len(r.calls)-1]
	r.calls = r.calls[:len(r.calls)-1]
	b := append(r.buf[:0], c.head...)
	switch {
	case trap != "":
		b = appendText(append(b, `,"trap":`...), trap)
	case c.binding.fn.void:
	case c.binding.answersStatus():
		b = appendStatus(append(b, `,"status":`...), answer)
	default:
		b = strconv.AppendUint(append(b, `,"result":`...), uint64(answer), 10)
	}
	for i, out := range c.outs {
		if i == 0 {
			b = append(b, `,"out":{`...)
		} else {
			b = append(b, ',')
		}
		b = append(append(append(b, '"'), c.binding.params[out.param].name...), '"', ':')
		b = append(b, c.values[out.from:out.to]...)
		if i == len(c.outs)-1 {
			b = append(b, '}')
		}
	}
	if c.skipped {
		b = append(b, `,"allocator_skipped":true`...)
	}
	if len(c.during) > 0 {
		b = append(append(append(b, `,"during":[`...), c.during...), ']')
	}
	r.emit(append(b, '}'), 0, 1)
	r.spare = append(r.spare, c)
}

// answersStatus is true for a function whose answer is a Status, false for one of WASI.
func (b *binding) answersStatus() bool { return strings.HasPrefix(b.label, moduleEnv+".proxy_") }

// wrote takes down what the host writes at the address that the module passed in a parameter.
func (r *vmRecord) wrote(ptr uint64, write func(b []byte, p *param, header string) []byte) {
	if len(r.calls) == 0 {
		return
	}
	c := r.calls[len(r.calls)-1]
	i := slices.IndexFunc(c.binding.params, func(p param) bool {
		return p.written() && uint32(c.args[p.at]) == uint32(ptr) && !c.has(&p)
	})
	if i < 0 { // the same one again: the last value counts
		i = slices.IndexFunc(c.binding.params, func(p param) bool {
			return p.written() && uint32(c.args[p.at]) == uint32(ptr)
		})
	}
	if i < 0 {
		return // within what environ_get fills, which follows from the header
	}
	from := len(c.values)
	c.values = write(c.values, &c.binding.params[i], c.header)
	c.outs = slices.DeleteFunc(c.outs, func(o recordedOut) bool { return o.param == i })
	c.outs = append(c.outs, recordedOut{i, from, len(c.values)})
}

func (c *recordedCall) has(p *param) bool {
	return slices.ContainsFunc(c.outs, func(o recordedOut) bool { return c.binding.params[o.param].at == p.at })
}

func (r *vmRecord) wroteNumber(ptr, value uint64) {
	r.wrote(ptr, func(b []byte, _ *param, _ string) []byte { return strconv.AppendUint(b, value, 10) })
}

func (r *vmRecord) wroteBytes(ptr uint64, data []byte) {
	r.wrote(ptr, func(b []byte, p *param, header string) []byte {
		if p.kind == paramMap {
			return appendPairs(b, data, r.rec.redaction)
		}
		return appendText(b, r.rec.redaction.value(header, data))
	})
}

// close writes the last line of the virtual machine, with a digest of its memory.
func (r *vmRecord) close() {
	b := fmt.Appendf(nil, `{"kind":"vm_end","vm":%d`, r.id)
	// Where a deadline cuts a run off differs from run to run.
	if size, sum := memoryDigest(r.v.mem); size > 0 && !errors.Is(r.v.dead, ErrDeadline) {
		b = fmt.Appendf(b, `,"memory_size":%d,"memory_sha256":"%s"`, size, sum)
	}
	if r.v.dead != nil {
		b = appendText(append(b, `,"died":`...), trapText(r.v.dead.Error()))
	}
	r.rec.put(append(b, '}'), 0, 0)
}

// memoryDigest is the SHA-256 of a whole memory.
func memoryDigest(m api.Memory) (size uint32, digest string) {
	if m == nil {
		return 0, ""
	}
	all, ok := m.Read(0, m.Size())
	if !ok {
		return 0, ""
	}
	sum := sha256.Sum256(all)
	return m.Size(), hex.EncodeToString(sum[:])
}
