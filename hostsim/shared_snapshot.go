package hostsim

import (
	"maps"
	"slices"
)

// sharedSnapshot is a namespace of shared data, whose values are never written to, and the queues of the process.
type sharedSnapshot struct {
	entries map[string]sharedEntry
	bytes   int
	cas     uint32
	queues  queues
	each    []SharedQueue // by place in queues.byID
}

func (s *SharedSpace) snapshot() sharedSnapshot {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	out := sharedSnapshot{entries: maps.Clone(s.entries), bytes: s.bytes, cas: s.data.cas, queues: s.data.queues.clone()}
	for _, q := range s.data.queues.byID {
		saved := *q
		saved.messages = slices.Clone(q.messages)
		out.each = append(out.each, saved)
	}
	return out
}

func (s *SharedSpace) restore(from sharedSnapshot) {
	s.data.mu.Lock()
	defer s.data.mu.Unlock()
	s.entries, s.bytes, s.data.cas, s.data.queues = maps.Clone(from.entries), from.bytes, from.cas, from.queues.clone()
	for i, q := range s.data.queues.byID {
		*q = from.each[i]
		q.messages = slices.Clone(q.messages)
	}
}

func (q queues) clone() queues {
	return queues{byName: maps.Clone(q.byName), byID: slices.Clone(q.byID)}
}

func (m *mailbox) isUsed() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.used
}

// mailSnapshot is what a mailbox holds.
type mailSnapshot struct {
	notices []queueNotice
	used    bool
}

func (m *mailbox) snapshot() mailSnapshot {
	m.mu.Lock()
	defer m.mu.Unlock()
	return mailSnapshot{slices.Clone(m.notices), m.used}
}

func (m *mailbox) restore(from mailSnapshot) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.notices, m.used = slices.Clone(from.notices), from.used
}

// faultSnapshot is a set of faults and how often each has been seen and played.
type faultSnapshot struct {
	set  *faultSet
	each []armedFault
}

func (s *faultSet) snapshot() faultSnapshot {
	out := faultSnapshot{set: s}
	if s != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, f := range s.list {
			out.each = append(out.each, *f)
		}
	}
	return out
}

// restore returns the set as it was.
func (s faultSnapshot) restore() *faultSet {
	if s.set != nil {
		s.set.mu.Lock()
		defer s.set.mu.Unlock()
		for i, f := range s.each {
			*s.set.list[i] = f
		}
	}
	return s.set
}
