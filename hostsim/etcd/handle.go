package etcd

import (
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

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

// read parses the first value of a body.
func read[T any](body []byte, parse func([]byte) (T, bool)) (t T, no *refusal) {
	raw, _, ok := cutValue(body)
	if ok {
		t, ok = parse(raw)
	}
	if !ok {
		return t, malformed
	}
	return t, nil
}

// admit refuses a request for no, what is wrong with it by itself, or else because its user may not touch the keys.
func (s *Server) admit(no *refusal, key, end string) *refusal {
	if no == nil {
		no = s.checkToken()
	}
	if no == nil {
		no = s.permit(key, end)
	}
	return no
}

func (s *Server) kvRange(body []byte) ([]byte, *refusal) {
	r, no := read(body, parseRange)
	if no != nil {
		return nil, no
	}
	if no := s.admit(r.check(), r.key, r.end); no != nil {
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
	r, no := read(body, parsePut)
	if no != nil {
		return nil, no
	}
	if no := s.admit(r.check(), r.key, ""); no != nil {
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
	r, no := read(body, parseDelete)
	if no != nil {
		return nil, no
	}
	if no := s.admit(r.check(), r.key, r.end); no != nil {
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
	t, no := read(body, parseTxn)
	if no != nil {
		return nil, no
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
