package etcd

import (
	"cmp"
	"slices"
	"time"
)

const (
	// minTTL and maxTTL bound a lease's TTL in seconds. Source: etcd's lessor, with the default election timeout of a second.
	minTTL = 2
	maxTTL = 9_000_000_000
	// promotion is what a lease gets on top of its TTL when a leader is elected. Source: etcd's --election-timeout.
	promotion = time.Second
	// firstLease is where the ids that the server itself chooses begin.
	firstLease = 7587000000000000000
)

type lease struct {
	id, ttl int64
	// expiry is by the server's clock.
	expiry time.Duration
}

// lease returns a lease by its id, or nil. It is valid until the next grant or revocation.
func (s *Server) lease(id int64) *lease {
	if i, ok := s.searchLease(id); ok {
		return &s.leases[i]
	}
	return nil
}

func (s *Server) searchLease(id int64) (int, bool) {
	return slices.BinarySearchFunc(s.leases, id, func(l lease, id int64) int { return cmp.Compare(l.id, id) })
}

// after is the time that many seconds from now on, or the end of time.
func (s *Server) after(seconds int64) time.Duration {
	if seconds > int64((1<<63-1-s.now)/time.Second) {
		return 1<<63 - 1
	}
	return s.now + time.Duration(seconds)*time.Second
}

func (s *Server) grant(m *message) ([]byte, *refusal) {
	ttl, id := m.int64(0), m.int64(1)
	if m.failed {
		return nil, malformed
	}
	if no := s.checkToken(); no != nil {
		return nil, no
	}
	for id == 0 {
		if s.lastLease++; s.lease(firstLease+s.lastLease) == nil {
			id = firstLease + s.lastLease
		}
	}
	i, exists := s.searchLease(id)
	switch {
	case ttl > maxTTL:
		return nil, leaseTTLTooLong
	case exists:
		return nil, leaseExists
	}
	ttl = max(ttl, minTTL)
	s.leases = slices.Insert(s.leases, i, lease{id, ttl, s.after(ttl)})
	s.nextExpiry = min(s.nextExpiry, s.after(ttl))
	return append(appendInt(appendInt(s.beginReply(), "ID", id), "TTL", ttl), '}'), nil
}

func (s *Server) revoke(m *message) ([]byte, *refusal) {
	id := m.int64(0)
	if m.failed {
		return nil, malformed
	}
	if no := s.checkToken(); no != nil {
		return nil, no
	}
	if no := s.checkLeaseKeys(id); no != nil {
		return nil, no
	}
	if s.lease(id) == nil {
		return nil, leaseNotFound
	}
	s.removeLease(id)
	return append(s.beginReply(), '}'), nil
}

// removeLease removes a lease and its keys in one revision.
func (s *Server) removeLease(id int64) {
	i, _ := s.searchLease(id)
	s.leases = slices.Delete(s.leases, i, i+1)
	b := batch{store: &s.store}
	b.deleteLease(id)
	b.end()
}

// expire removes the leases whose time has come, in the order of their expiry, each in a revision of its own.
func (s *Server) expire() {
	for s.now >= s.electedAt && s.now >= s.nextExpiry {
		first := -1
		s.nextExpiry = never
		for i := range s.leases {
			if first < 0 || s.leases[i].expiry < s.leases[first].expiry {
				first = i
			}
		}
		if first < 0 {
			return
		}
		if s.nextExpiry = s.expiryOf(&s.leases[first]); s.now >= s.nextExpiry {
			s.removeLease(s.leases[first].id)
		}
	}
}

// expiryOf is when etcd comes round to revoking a lease.
func (s *Server) expiryOf(l *lease) time.Duration {
	return l.expiry + min(max(s.faults.ExpiryDelay, 0), never-l.expiry)
}

func (s *Server) timeToLive(m *message) ([]byte, *refusal) {
	id, keys := m.int64(0), m.bool(1)
	if m.failed {
		return nil, malformed
	}
	out := appendInt(s.beginReply(), "ID", id)
	l := s.lease(id)
	if l == nil {
		return append(out, `,"TTL":"-1"}`...), nil
	}
	// Between two requests some time passes in etcd, however little: a lease of five seconds has four left at once.
	out = appendInt(out, "TTL", int64((l.expiry-s.now-1)/time.Second))
	out = appendInt(out, "grantedTTL", l.ttl)
	if keys {
		first := true
		for _, kv := range s.store.keys {
			if kv.lease != id {
				continue
			}
			if first {
				out = append(out, `,"keys":[`...)
			} else {
				out = append(out, ',')
			}
			out, first = appendBytes(out, kv.key), false
		}
		if !first {
			out = append(out, ']')
		}
	}
	return append(out, '}'), nil
}

// keepAlive renews a lease for each JSON value in the body: it is a stream, of which the gateway sends a line for each
// reply. A lease that is not there has no TTL.
func (s *Server) keepAlive(body []byte) ([]byte, *refusal) {
	var out []byte
	for first := true; ; first = false {
		raw, rest, ok := cutValue(body)
		if ok && raw == nil {
			return out, nil
		}
		var m message
		if m.failed = !ok; ok {
			parseMessage(&m, raw, leaseFields[:1])
		}
		id := m.int64(0)
		if m.failed {
			if first {
				return nil, &refusal{codeUnknown, malformed.message}
			}
			return out, nil
		}
		var ttl int64
		if l := s.lease(id); l != nil && l.expiry > s.now {
			l.expiry, ttl = s.after(l.ttl), l.ttl
		}
		out = append(append(out, `{"result":`...), s.beginReply()...)
		out = append(appendInt(appendInt(out, "ID", id), "TTL", ttl), "}}\n"...)
		body = rest
	}
}
