// Package etcd is a simulated etcd server for plugins that reach one by proxy_http_call: the part of etcd's v3 JSON gateway
// that keeps keys, transactions, leases and tokens, as etcd 3.4 answers. It has neither goroutine nor timer: its clock moves
// when it is told to, and the same requests at the same times get the same replies, so that several simulated gateways can
// share it in a test that is played again. What goes wrong between it and its clients is for the caller to say: see Faults.
//
// It serves POST on /v3/kv/range, put, deleterange and txn, on /v3/lease/grant, revoke, timetolive and keepalive, and on
// /v3/auth/authenticate. All else is an unknown path to it. It is a cluster of one, and keeps only the newest revision: a
// range at an older one is answered as if etcd had compacted it. It has no limit for the size of requests, and no quota.
//
// A test with build tag etcd holds it against the real server. Replies are those of etcd to the byte, but for the messages
// of errors in a request's JSON.
package etcd

import (
	"math"
	"slices"
	"strings"
	"sync"
	"time"
)

const never = time.Duration(math.MaxInt64)

// Outage is what becomes of requests and answers on their way.
type Outage int

const (
	// NoOutage answers every request.
	NoOutage Outage = iota
	// Refused is a closed port: nothing is applied, and Envoy answers 503 in etcd's place.
	Refused
	// Hung takes requests, applies nothing and answers nothing.
	Hung
	// AnswerHung applies requests and answers nothing: the client waits for its timeout, and cannot know.
	AnswerHung
	// Cut breaks the connection before the request is applied: Envoy answers 503.
	Cut
	// AnswerCut applies requests and breaks the connection in place of the answer: Envoy answers 503 as for Cut.
	AnswerCut
)

// Faults are what goes wrong. The zero value is a server that answers at once.
type Faults struct {
	Outage Outage
	// Latency is what every answer takes, those of a closed port and of broken connections included. A request is applied
	// when it arrives.
	Latency time.Duration
	// ReadLatency is added for ranges and for transactions without any other operation.
	ReadLatency time.Duration
	// ExpiryDelay is how long after its TTL a lease is revoked. Until then its keys are there, while keepalive answers that the
	// lease is gone; etcd's says so once it is. etcd looks for such leases twice a second, so that it takes up to 500 ms.
	ExpiryDelay time.Duration
}

// Server is a simulated etcd. It is safe for concurrent use; requests are applied one after another, in the order in which
// they come.
type Server struct {
	mu sync.Mutex
	state
	// The request that is being handled, and its user: nil for none.
	authorization    string
	hasAuthorization bool
	user             *User
}

// state is what a clone has of its own.
type state struct {
	now        time.Duration
	faults     Faults
	store      store
	leases     []lease       // by id
	nextExpiry time.Duration // no lease is revoked before
	lastLease  int64
	users      map[string]User // nil while auth is off; never changed
	tokens     []token
	lastToken  int64
	term       int64
	electedAt  time.Duration // until then there is no leader
}

// New returns a server without keys at revision 1, whose clock stands at 0.
func New() *Server {
	return &Server{state: state{store: store{revision: 1}, term: 2, nextExpiry: never}}
}

// Clone returns a server in the same state, clock and faults included, that shares nothing with s that changes. It costs a
// pointer for each key.
func (s *Server) Clone() *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	return &Server{state: s.state.clone()}
}

// Restore sets the server back to a clone of it, its clock too, as hostsim.Host.Restore does for a host, whose Config.HTTPCall
// then needs no change. The clone stays as it is.
func (s *Server) Restore(clone *Server) {
	clone.mu.Lock()
	state := clone.state.clone()
	clone.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = state
}

func (s *state) clone() state {
	c := *s
	c.store, c.leases, c.tokens = s.store.clone(), slices.Clone(s.leases), slices.Clone(s.tokens)
	return c
}

// Value returns a key's value, and whether there is such a key: for a test that looks in from outside, past all faults.
func (s *Server) Value(key string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if kv := s.store.get(key); kv != nil {
		return kv.value, true
	}
	return "", false
}

// Keys returns the keys that begin with prefix, sorted, past all faults.
func (s *Server) Keys(prefix string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	for i, _ := search(s.store.keys, prefix); i < len(s.store.keys) && strings.HasPrefix(s.store.keys[i].key, prefix); i++ {
		out = append(out, s.store.keys[i].key)
	}
	return out
}

// Revision is that of the newest change; 1 at first.
func (s *Server) Revision() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.store.revision
}

// SetFaults sets what goes wrong from now on.
func (s *Server) SetFaults(f Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = f
	s.nextExpiry = 0
	s.expire()
}

// Now is the server's time since New, or what AdvanceTo was last given.
func (s *Server) Now() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now
}

// AdvanceTo moves the clock on to now, and revokes the leases that expire on the way. A time that has passed is ignored: of
// several clients with clocks of their own the one that is ahead leads.
func (s *Server) AdvanceTo(now time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advanceTo(now)
}

// Advance moves the clock on by d. A negative d is ignored.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d > 0 {
		s.advanceTo(s.now + min(d, never-s.now))
	}
}

func (s *Server) advanceTo(now time.Duration) {
	if now <= s.now {
		return
	}
	if s.now < s.electedAt {
		s.now = min(now, s.electedAt)
		if s.now < s.electedAt {
			return
		}
		s.promote()
	}
	s.now = max(s.now, now)
	s.expire()
}

// Restart stops the server and starts it again: keys and leases stay, tokens are lost. For as long as it has no leader it
// answers nothing, applies nothing and revokes nothing; from then on every lease lasts its whole TTL anew, and a second.
func (s *Server) Restart(leaderless time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens = nil
	s.term++
	s.nextExpiry = never
	if s.electedAt = s.now + min(max(leaderless, 0), never-s.now); s.electedAt == s.now {
		s.promote()
	}
}

func (s *Server) promote() {
	for i := range s.leases {
		s.leases[i].expiry = s.after(s.leases[i].ttl)
		s.leases[i].expiry += min(promotion, never-s.leases[i].expiry)
	}
	s.nextExpiry = 0
	s.expire()
}
