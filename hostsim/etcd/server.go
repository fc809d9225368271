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
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
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
	// ExpiryDelay is how long after its TTL a lease is revoked. Until then its keys are there, and keepalive renews it, where
	// etcd's waits. etcd looks twice a second, so that it takes it up to 500 ms.
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

// Clone returns a server in the same state that shares nothing with s that changes. It costs a pointer for each key.
func (s *Server) Clone() *Server {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := &Server{state: s.state}
	c.store, c.leases, c.tokens = s.store.clone(), slices.Clone(s.leases), slices.Clone(s.tokens)
	return c
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

// Handle carries out a request and returns the answer's status and body: status 0 and no body if there is none. Of the
// headers only authorization counts, which holds a bare token. A query in path is ignored.
func (s *Server) Handle(method, path string, headers hostsim.Headers, body []byte) (status int, reply []byte) {
	a := s.answer(method, path, headers, body)
	return a.status, a.body
}

// answer is what comes back for a request.
type answer struct {
	status int // 0 for no answer
	body   []byte
	// plain is set if the body is text and not JSON.
	plain bool
	after time.Duration
}

func (s *Server) answer(method, path string, headers hostsim.Headers, body []byte) answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	var a answer
	switch {
	case s.faults.Outage == Hung:
		return answer{}
	case s.faults.Outage == Refused:
		a = refused
	case s.faults.Outage == Cut:
		a = cut
	case s.now < s.electedAt:
		return answer{}
	default:
		s.authorization, s.hasAuthorization = headers.Get("authorization")
		a = s.route(method, path, body)
	}
	switch s.faults.Outage {
	case AnswerHung:
		return answer{}
	case AnswerCut:
		a = cut
	}
	a.after += s.faults.Latency
	return a
}

// What Envoy answers in place of an upstream. Source: seen on Envoy 1.36.4 and 1.40.0.
var (
	refused = answer{status: http.StatusServiceUnavailable, plain: true, body: []byte(beforeHeaders + "remote connection failure")}
	cut     = answer{status: http.StatusServiceUnavailable, plain: true, body: []byte(beforeHeaders + "connection termination")}
)

const beforeHeaders = "upstream connect error or disconnect/reset before headers. reset reason: "

// route finds the handler of a path. Source: etcd 3.4, etcdserver/etcdserverpb/rpc.proto.
func (s *Server) route(method, path string, body []byte) answer {
	path, _, _ = strings.Cut(path, "?")
	if rest, ok := strings.CutPrefix(path, "/v3beta/"); ok {
		path = "/v3/" + rest
	}
	if !strings.HasPrefix(path, "/v3/") {
		return answer{status: http.StatusNotFound, body: []byte("404 page not found\n"), plain: true}
	}
	var handle func([]byte) ([]byte, *refusal)
	var reading bool
	switch path {
	case "/v3/kv/range":
		handle, reading = s.kvRange, true
	case "/v3/kv/put":
		handle = s.kvPut
	case "/v3/kv/deleterange":
		handle = s.kvDeleteRange
	case "/v3/kv/txn":
		handle = func(body []byte) ([]byte, *refusal) { return s.kvTxn(body, &reading) }
	case "/v3/lease/grant":
		handle = unary(s.grant, grantFields)
	case "/v3/lease/revoke", "/v3/kv/lease/revoke":
		handle = unary(s.revoke, leaseFields[:1])
	case "/v3/lease/timetolive", "/v3/kv/lease/timetolive":
		handle = unary(s.timeToLive, leaseFields)
	case "/v3/lease/keepalive":
		handle = s.keepAlive
	case "/v3/auth/authenticate":
		handle = unary(s.authenticate, authenticateFields)
	default:
		return answer{status: http.StatusNotFound, body: []byte("Not Found\n"), plain: true}
	}
	if method != http.MethodPost {
		return answer{status: http.StatusMethodNotAllowed, body: []byte("Method Not Allowed\n"), plain: true}
	}
	reply, no := handle(body)
	if no == crashed {
		return cut
	}
	a := answer{status: http.StatusOK, body: reply}
	if no != nil {
		a = answer{status: no.status(), body: no.body()}
	}
	if reading {
		a.after = s.faults.ReadLatency
	}
	return a
}

// unary makes a handler of bodies from one of messages.
func unary(handle func(*message) ([]byte, *refusal), fields []field) func([]byte) ([]byte, *refusal) {
	return func(body []byte) ([]byte, *refusal) {
		raw, _, ok := cutValue(body)
		if !ok {
			return nil, malformed
		}
		var m message
		parseMessage(&m, raw, fields)
		return handle(&m)
	}
}

func (s *Server) kvRange(body []byte) ([]byte, *refusal) {
	raw, _, ok := cutValue(body)
	if !ok {
		return nil, malformed
	}
	r, ok := parseRange(raw)
	if !ok {
		return nil, malformed
	}
	if no := r.check(); no != nil {
		return nil, no
	}
	if no := s.checkToken(); no != nil {
		return nil, no
	}
	if no := s.permit(r.key, r.end); no != nil {
		return nil, no
	}
	switch {
	case r.revision > s.store.revision:
		return nil, futureRevision
	case r.revision > 0 && r.revision < s.store.revision:
		return nil, compacted
	}
	b := batch{store: &s.store}
	return append(appendRange(s.beginReply(), b.read(&r), r.keysOnly), '}'), nil
}

func (s *Server) kvPut(body []byte) ([]byte, *refusal) {
	raw, _, ok := cutValue(body)
	if !ok {
		return nil, malformed
	}
	r, ok := parsePut(raw)
	if !ok {
		return nil, malformed
	}
	if no := r.check(); no != nil {
		return nil, no
	}
	if no := s.checkToken(); no != nil {
		return nil, no
	}
	if no := s.permit(r.key, ""); no != nil {
		return nil, no
	}
	if no := s.checkLeaseKeys(r.lease); no != nil {
		return nil, no
	}
	if r.lease != 0 && s.lease(r.lease) == nil { // here before the key, unlike in a transaction
		return nil, leaseNotFound
	}
	if no := s.checkPut(&r); no != nil {
		return nil, no
	}
	b := batch{store: &s.store}
	old := s.store.get(r.key)
	b.write(&r, old)
	b.end()
	return append(appendPut(s.beginReply(), &r, old), '}'), nil
}

func (s *Server) kvDeleteRange(body []byte) ([]byte, *refusal) {
	raw, _, ok := cutValue(body)
	if !ok {
		return nil, malformed
	}
	r, ok := parseDelete(raw)
	if !ok {
		return nil, malformed
	}
	if no := r.check(); no != nil {
		return nil, no
	}
	if no := s.checkToken(); no != nil {
		return nil, no
	}
	if no := s.permit(r.key, r.end); no != nil {
		return nil, no
	}
	var old []byte
	if r.prevKV {
		old = appendPrevious(nil, &s.store, &r)
	}
	b := batch{store: &s.store}
	n := b.delete(r.key, r.end)
	b.end()
	return append(append(appendInt(s.beginReply(), "deleted", int64(n)), old...), '}'), nil
}

// kvTxn sets reading if the transaction is of ranges alone.
func (s *Server) kvTxn(body []byte, reading *bool) ([]byte, *refusal) {
	raw, _, ok := cutValue(body)
	if !ok {
		return nil, malformed
	}
	t, ok := parseTxn(raw)
	if !ok {
		return nil, malformed
	}
	if t.hole {
		return nil, crashed
	}
	notRange := func(o op) bool { return o.kind != opRange }
	*reading = !slices.ContainsFunc(t.success, notRange) && !slices.ContainsFunc(t.failure, notRange)
	if no := t.check(maxOps); no != nil {
		return nil, no
	}
	for _, ops := range [][]op{t.success, t.failure} {
		if _, no := checkWrites(ops); no != nil {
			return nil, no
		}
	}
	if no := s.checkToken(); no != nil {
		return nil, no
	}
	if no := s.permitTxn(t); no != nil {
		return nil, no
	}
	return s.txn(t)
}
