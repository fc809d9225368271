package hostsim

import (
	"encoding/json"
	"errors"
	"strconv"
	"time"
)

// answer does to the module what the host did in the recording: it writes what the host wrote, in the order of the
// parameters, and returns what the host returned.
func (m *checkVM) answer(b *binding, l *recordedLine, args, stack []uint64) {
	result, err := l.answer()
	if err != nil {
		m.fail(m.c.in.errorf("%w", err))
	}
	m.nested = append(m.nested, l.During)
	m.skipAllocation = l.AllocatorSkipped
	if computed(b.fn.name) && l.Trap == nil && result == errnoSuccess {
		b.fn.call(m.v, args)
	}
	for i := range b.params {
		p := &b.params[i]
		raw, ok := l.Out[p.name]
		if !ok {
			continue
		}
		m.callbacksInside()
		if err := m.write(p, raw, args); err != nil {
			m.fail(m.c.in.errorf("%s of %s: %w", p.name, b.label, err))
		}
	}
	m.callbacksInside()
	if left := m.next(); left != nil {
		m.differ("inside "+b.label+" "+left.expected(), "makes no such call")
	}
	m.nested, m.skipAllocation = m.nested[:len(m.nested)-1], false
	if l.Trap != nil {
		panic(errors.New(*l.Trap))
	}
	if len(stack) > 0 && !b.fn.void {
		stack[0] = result
	}
}

// computed is true for a function whose writes follow from the header alone and hold the module's own addresses.
func computed(name string) bool { return name == "environ_get" }

// write repeats one write of the host.
func (m *checkVM) write(p *param, raw json.RawMessage, args []uint64) error {
	if p.kind == paramGiven || p.kind == paramMap {
		data, err := recordedBytes(raw)
		if err == nil {
			give(m.v, data, args[p.at], args[p.at+1])
		}
		return err
	}
	if p.kind == paramWanted {
		data, err := recordedBytes(raw)
		if err == nil {
			giveWanted(m.v, data, args[p.at], args[p.at+1])
		}
		return err
	}
	if !p.written() {
		return errors.New("the host does not write it")
	}
	if raw[0] < '0' || raw[0] > '9' {
		data, err := recordedBytes(raw)
		if err == nil {
			m.v.putBytes(args[p.at], data)
		}
		return err
	}
	n, err := strconv.ParseUint(string(raw), 10, 64)
	switch {
	case err != nil:
	case p.kind == paramWide:
		m.v.putU64(args[p.at], n)
	default:
		m.v.putU32(args[p.at], uint32(n))
	}
	return err
}

// callbacksInside plays the callbacks that the host made while it carried out a host call.
func (m *checkVM) callbacksInside() {
	for {
		l := m.peek()
		if l == nil || l.Kind != kindCallback {
			return
		}
		m.drop()
		m.play(l)
	}
}

// noteClock remembers the time that a passed-over line told.
func (m *checkVM) noteClock(l *recordedLine) {
	var args struct {
		Clock uint64 `json:"clock"`
	}
	raw, ok := l.Out["time"]
	if !ok || json.Unmarshal(l.Args, &args) != nil {
		return
	}
	if n, err := strconv.ParseUint(string(raw), 10, 64); err == nil {
		m.clocks[args.Clock] = max(n, m.clocks[args.Clock])
	}
}

// invent answers a call of another build's runtime that the recorded one did not make: the last time that the recording
// told, a microsecond later at each reading of the monotonic clock, random numbers from the recording's seed, and for all
// else what a gateway answers.
func (m *checkVM) invent(b *binding, stack []uint64) {
	if b.fn.name == "clock_time_get" {
		clock := uint64(uint32(stack[0]))
		now := m.clocks[clock]
		switch {
		case now == 0 && clock == clockMonotonic:
			now = uint64(monotonicStart)
		case now == 0:
			now = uint64(m.started().UnixNano())
		case clock == clockMonotonic:
			now += uint64(monotonicStep)
		}
		m.clocks[clock] = now
		stack[0] = errnoSuccess
		if !m.v.putU64(stack[2], now) {
			stack[0] = errnoFault
		}
		return
	}
	if b.fn.call == nil {
		stack[0] = errnoNosys
		return
	}
	answer := b.fn.call(m.v, stack)
	if !b.fn.void && len(stack) > 0 {
		stack[0] = uint64(answer)
	}
}

// started is when the recorded host began.
func (m *checkVM) started() time.Time {
	t, err := time.Parse(time.RFC3339Nano, m.c.in.header.Started)
	if err != nil {
		return VirtualEpoch
	}
	return t
}

// cutEnv reads NAME=value and a zero byte.
func cutEnv(entry []byte) (name, value string, ok bool) {
	for i, c := range entry {
		if c == '=' {
			last := len(entry) - 1
			if entry[last] != 0 || i > last {
				return "", "", false
			}
			return string(entry[:i]), string(entry[i+1 : last]), true
		}
	}
	return "", "", false
}
