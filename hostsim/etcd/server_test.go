package etcd

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// post sends a request and returns status and body, without the header's ids, as one text.
func post(s *Server, path, body string, headers ...[2]string) string {
	status, reply := s.Handle("POST", path, headers, []byte(body))
	text := strings.Replace(string(reply), `"cluster_id":"`+clusterID+`","member_id":"`+memberID+`",`, "", 1)
	return fmt.Sprint(status, " ", text)
}

// expect fails the test unless each path, body, and answer in turn is as it says.
func expect(t *testing.T, s *Server, steps ...string) {
	t.Helper()
	for i := 0; i+2 < len(steps); i += 3 {
		if got := post(s, steps[i], steps[i+1]); got != steps[i+2] {
			t.Errorf("%s %s\ngot  %s\nwant %s", steps[i], steps[i+1], got, steps[i+2])
		}
	}
}

// no is a refusal as post returns it.
func no(status, code int, message string) string {
	return fmt.Sprintf(`%d {"error":%q,"message":%q,"code":%d}`, status, message, message, code)
}

const (
	rangePath  = "/v3/kv/range"
	putPath    = "/v3/kv/put"
	deletePath = "/v3/kv/deleterange"
	txnPath    = "/v3/kv/txn"
	grantPath  = "/v3/lease/grant"
	revokePath = "/v3/lease/revoke"
	ttlPath    = "/v3/lease/timetolive"
	alivePath  = "/v3/lease/keepalive"
	authPath   = "/v3/auth/authenticate"
)

// A session's first turn, as a plugin sends it: the request creates, or tells what another has created.
const createTxn = `{"compare":[{"target":"CREATE","key":"L3Mvcw==","create_revision":"0"}],` +
	`"success":[{"requestPut":{"key":"L3Mvcw==","value":"MTAuMC4wLjE6ODAwMA==","lease":"7"}},{"requestPut":{"key":"L3IvcmVwbGljYS9z","lease":"7"}}],` +
	`"failure":[{"requestRange":{"key":"L3Mvcw=="}}]}`

func TestCreateTxn(t *testing.T) {
	s := New()
	expect(t, s,
		txnPath, createTxn, no(404, 5, "etcdserver: requested lease not found"),
		grantPath, `{"ID":"7","TTL":"60"}`, `200 {"header":{"revision":"1","raft_term":"2"},"ID":"7","TTL":"60"}`,
		txnPath, createTxn, `200 {"header":{"revision":"2","raft_term":"2"},"succeeded":true,"responses":[`+
			`{"response_put":{"header":{"revision":"2"}}},{"response_put":{"header":{"revision":"2"}}}]}`,
		txnPath, createTxn, `200 {"header":{"revision":"2","raft_term":"2"},"responses":[{"response_range":{"header":{"revision":"2"},`+
			`"kvs":[{"key":"L3Mvcw==","create_revision":"2","mod_revision":"2","version":"1","value":"MTAuMC4wLjE6ODAwMA==","lease":"7"}],"count":"1"}}]}`,
	)
}

func TestWholeBytes(t *testing.T) {
	const header = `{"header":{"cluster_id":"14841639068965178418","member_id":"10276657743932975437","revision":"2","raft_term":"2"}`
	s := New()
	status, reply := s.Handle("POST", putPath, nil, []byte(`{"key":"YQ==","value":"eA=="}`))
	if status != 200 || string(reply) != header+"}" {
		t.Errorf("put: %d %s", status, reply)
	}
	status, reply = s.Handle("POST", alivePath, nil, []byte(`{"ID":1}`))
	if status != 200 || string(reply) != `{"result":`+header+`,"ID":"1"}}`+"\n" {
		t.Errorf("keepalive: %d %s", status, reply)
	}
	status, reply = s.Handle("POST", rangePath, nil, nil)
	if status != 400 || string(reply) != `{"error":"etcdserver: key is not provided","message":"etcdserver: key is not provided","code":3}` {
		t.Errorf("range: %d %s", status, reply)
	}
}

func TestKeys(t *testing.T) {
	expect(t, New(),
		rangePath, `{"key":"YQ=="}`, `200 {"header":{"revision":"1","raft_term":"2"}}`,
		putPath, `{"key":"YQ=="}`, `200 {"header":{"revision":"2","raft_term":"2"}}`,
		putPath, `{"key":"YWE=","value":"eA==","prev_kv":true}`, `200 {"header":{"revision":"3","raft_term":"2"}}`,
		putPath, `{"key":"YWE=","value":"eQ==","prevKv":true}`,
		`200 {"header":{"revision":"4","raft_term":"2"},"prev_kv":{"key":"YWE=","create_revision":"3","mod_revision":"3","version":"1","value":"eA=="}}`,
		rangePath, `{"key":"YQ==","range_end":"Yg==","count_only":true}`, `200 {"header":{"revision":"4","raft_term":"2"},"count":"2"}`,
		rangePath, `{"key":"YQ==","range_end":"Yg==","limit":1}`,
		`200 {"header":{"revision":"4","raft_term":"2"},"kvs":[{"key":"YQ==","create_revision":"2","mod_revision":"2","version":"1"}],"more":true,"count":"2"}`,
		rangePath, `{"key":"YQ==","range_end":"Yg==","min_mod_revision":"3","keys_only":true}`,
		`200 {"header":{"revision":"4","raft_term":"2"},"kvs":[{"key":"YWE=","create_revision":"3","mod_revision":"4","version":"2"}],"count":"2"}`,
		putPath, `{"key":"YWE=","ignore_value":true,"lease":3}`, no(404, 5, "etcdserver: requested lease not found"),
		putPath, `{"key":"Yg==","ignore_value":true}`, no(400, 3, "etcdserver: key not found"),
		putPath, `{"key":"YQ==","ignore_value":true}`, `200 {"header":{"revision":"5","raft_term":"2"}}`,
		deletePath, `{"key":"Yw=="}`, `200 {"header":{"revision":"5","raft_term":"2"}}`,
		deletePath, `{"key":"YQ==","range_end":"AA==","prev_kv":true}`,
		`200 {"header":{"revision":"6","raft_term":"2"},"deleted":"2","prev_kvs":[{"key":"YQ==","create_revision":"2","mod_revision":"5","version":"2"},`+
			`{"key":"YWE=","create_revision":"3","mod_revision":"4","version":"2","value":"eQ=="}]}`,
		rangePath, `{"key":"YQ==","revision":"7"}`,
		no(400, 11, "etcdserver: mvcc: required revision is a future revision"),
		rangePath, `{"key":"YQ==","revision":"5"}`,
		no(400, 11, "etcdserver: mvcc: required revision has been compacted"),
	)
}

func TestTxnRefused(t *testing.T) {
	duplicate := no(400, 3, "etcdserver: duplicate key given in txn request")
	many := no(400, 3, "etcdserver: too many operations in txn request")
	ops := func(n int) string {
		return `{"success":[` + strings.TrimSuffix(strings.Repeat(`{"requestRange":{"key":"YQ=="}},`, n), ",") + `]}`
	}
	s := New()
	expect(t, s,
		txnPath, `{"success":[{"requestPut":{"key":"YQ=="}},{"request_put":{"key":"YQ=="}}]}`, duplicate,
		txnPath, `{"success":[{"requestPut":{"key":"YQ=="}},{"requestDeleteRange":{"key":"YQ=="}}]}`, duplicate,
		txnPath, `{"success":[{"requestPut":{"key":"YQ=="}},{"requestDeleteRange":{"key":"QQ==","rangeEnd":"Yg=="}}]}`, duplicate,
		txnPath, ops(129), many,
		txnPath, `{"compare":[{"key":""}]}`, no(400, 3, "etcdserver: key is not provided"),
		txnPath, `{"compare":[null]}`, `503 upstream connect error or disconnect/reset before headers. reset reason: connection termination`,
		txnPath, `{"compar":[{"key":""}],"success":[{"requestPut":{"key":"YQ=="}}]}`,
		`200 {"header":{"revision":"2","raft_term":"2"},"succeeded":true,"responses":[{"response_put":{"header":{"revision":"2"}}}]}`,
	)
	if got := post(s, txnPath, ops(128)); !strings.HasPrefix(got, "200 ") {
		t.Error("128 operations: ", got)
	}
	for _, body := range []string{
		`{"key":"YQ"}`, `{"key":"_w=="}`, `{"key":1}`, `{"key"}`, `[]`, `1`, `x`, `{"key":"YQ==","limit":"x"}`, `{"key":"YQ==","limit":1.5}`,
		`{"key":"YQ==","count_only":"true"}`, `{"key":"YQ==","sort_order":"none"}`, `{"key":"YQ==","sort_target":5}`, ``,
	} {
		if got := post(s, rangePath, body); !strings.HasPrefix(got, "400 ") || !strings.HasSuffix(got, `"code":3}`) {
			t.Errorf("%s: %s", body, got)
		}
	}
}

func TestPaths(t *testing.T) {
	for _, c := range []struct {
		method, path, want string
	}{
		{"GET", rangePath, "405 Method Not Allowed\n"},
		{"POST", "/v3/kv/rang", "404 Not Found\n"},
		{"POST", "/v3alpha/kv/range", "404 404 page not found\n"},
		{"POST", "/v3beta/kv/range?x=y", `200 {"header":{"cluster_id":"` + clusterID + `","member_id":"` + memberID + `","revision":"1","raft_term":"2"}}`},
	} {
		status, body := New().Handle(c.method, c.path, nil, []byte(`{"key":"YQ=="}`))
		if got := fmt.Sprint(status, " ", string(body)); got != c.want {
			t.Errorf("%s %s: got %q, want %q", c.method, c.path, got, c.want)
		}
	}
}

func TestLeases(t *testing.T) {
	s := New()
	expect(t, s,
		grantPath, `{"ID":5,"TTL":1}`, `200 {"header":{"revision":"1","raft_term":"2"},"ID":"5","TTL":"2"}`,
		grantPath, `{"ID":5,"TTL":9}`, no(412, 9, "etcdserver: lease already exists"),
		grantPath, `{"TTL":10}`, `200 {"header":{"revision":"1","raft_term":"2"},"ID":"7587000000000000001","TTL":"10"}`,
		putPath, `{"key":"YQ==","lease":5}`, `200 {"header":{"revision":"2","raft_term":"2"}}`,
		putPath, `{"key":"Yg==","lease":5}`, `200 {"header":{"revision":"3","raft_term":"2"}}`,
		putPath, `{"key":"Yg==","lease":"7587000000000000001"}`, `200 {"header":{"revision":"4","raft_term":"2"}}`,
		ttlPath, `{"ID":5,"keys":true}`, `200 {"header":{"revision":"4","raft_term":"2"},"ID":"5","TTL":"1","grantedTTL":"2","keys":["YQ=="]}`,
		ttlPath, `{"ID":6}`, `200 {"header":{"revision":"4","raft_term":"2"},"ID":"6","TTL":"-1"}`,
	)
	s.Advance(1500 * time.Millisecond)
	expect(t, s, alivePath, `{"ID":5}`, `200 {"result":{"header":{"revision":"4","raft_term":"2"},"ID":"5","TTL":"2"}}`+"\n")
	s.Advance(1999 * time.Millisecond)
	expect(t, s, rangePath, `{"key":"YQ==","count_only":true}`, `200 {"header":{"revision":"4","raft_term":"2"},"count":"1"}`)
	s.Advance(time.Millisecond)
	expect(t, s, rangePath, `{"key":"YQ==","count_only":true}`, `200 {"header":{"revision":"5","raft_term":"2"}}`,
		alivePath, `{"ID":5}`, `200 {"result":{"header":{"revision":"5","raft_term":"2"},"ID":"5"}}`+"\n",
		revokePath, `{"ID":5}`, no(404, 5, "etcdserver: requested lease not found"),
		revokePath, `{"ID":"7587000000000000001"}`, `200 {"header":{"revision":"6","raft_term":"2"}}`,
		rangePath, `{"key":"AA==","range_end":"AA=="}`, `200 {"header":{"revision":"6","raft_term":"2"}}`)
}

// Two leases that expire in one step are revoked in the order of their time, each in a revision of its own.
func TestExpiryOrder(t *testing.T) {
	s := New()
	for _, body := range []string{`{"ID":1,"TTL":9}`, `{"ID":2,"TTL":3}`} {
		post(s, grantPath, body)
	}
	post(s, putPath, `{"key":"YQ==","lease":1}`)
	post(s, putPath, `{"key":"Yg==","lease":2}`)
	c := s.Clone()
	s.Advance(time.Hour)
	if s.Revision() != 5 || c.Revision() != 3 {
		t.Errorf("revisions %d of the server, %d of its clone", s.Revision(), c.Revision())
	}
	c.SetFaults(Faults{ExpiryDelay: 500 * time.Millisecond})
	for _, want := range []struct {
		at       time.Duration
		revision int64
	}{{3499, 3}, {3500, 4}, {9499, 4}, {9500, 5}} {
		if c.AdvanceTo(want.at * time.Millisecond); c.Revision() != want.revision {
			t.Errorf("at %d ms: revision %d, want %d", want.at, c.Revision(), want.revision)
		}
		if want.at == 9499 { // past its TTL, before its revocation
			expect(t, c, alivePath, `{"ID":1}`, `200 {"result":{"header":{"revision":"4","raft_term":"2"},"ID":"1"}}`+"\n")
		}
	}
}

func TestClone(t *testing.T) {
	s := New()
	post(s, grantPath, `{"ID":1,"TTL":9}`)
	post(s, putPath, `{"key":"YQ==","value":"eA==","lease":1}`)
	c := s.Clone()
	post(c, putPath, `{"key":"YQ==","value":"eQ=="}`)
	post(c, putPath, `{"key":"AA=="}`)
	post(c, revokePath, `{"ID":1}`)
	expect(t, s,
		rangePath, `{"key":"AA==","range_end":"AA=="}`,
		`200 {"header":{"revision":"2","raft_term":"2"},"kvs":[{"key":"YQ==","create_revision":"2","mod_revision":"2","version":"1","value":"eA==","lease":"1"}],"count":"1"}`,
		revokePath, `{"ID":1}`, `200 {"header":{"revision":"3","raft_term":"2"}}`)
	expect(t, c, rangePath, `{"key":"AA==","range_end":"AA==","count_only":true}`, `200 {"header":{"revision":"4","raft_term":"2"},"count":"2"}`)
	if value, ok := c.Value("a"); value != "y" || !ok || !slices.Equal(c.Keys(""), []string{"\x00", "a"}) || c.Keys("b") != nil {
		t.Errorf("a = %q, %v; keys %q", value, ok, c.Keys(""))
	}
	s.Restore(c)
	post(s, putPath, `{"key":"Yg=="}`)
	s.Advance(time.Second)
	if s.Revision() != 5 || c.Revision() != 4 || c.Now() != 0 {
		t.Errorf("revisions %d and %d, time %v", s.Revision(), c.Revision(), c.Now())
	}
}

func TestAuth(t *testing.T) {
	denied := no(403, 7, "etcdserver: permission denied")
	invalid := no(401, 16, "etcdserver: invalid auth token")
	const get = `{"key":"L3MvMQ=="}`
	s := New()
	expect(t, s, authPath, `{"name":"g","password":"p"}`,
		no(412, 9, "etcdserver: authentication is not enabled"))
	s.EnableAuth(map[string]User{"g": {Password: "p", Prefixes: []string{"/s/", "/s0"}}, "root": {Password: "r", Root: true}})
	expect(t, s,
		rangePath, get, no(400, 3, "etcdserver: user name is empty"),
		grantPath, `{"ID":1,"TTL":100}`, `200 {"header":{"revision":"1","raft_term":"2"},"ID":"1","TTL":"100"}`,
		authPath, `{"name":"g","password":"x"}`,
		no(400, 3, "etcdserver: authentication failed, invalid user ID or password"),
		authPath, `{"name":"g","password":"p"}`, `200 {"header":{"revision":"1","raft_term":"2"},"token":"AAAAAAAAAAAAAAAB.1"}`,
		authPath, `{"name":"root","password":"r"}`, `200 {"header":{"revision":"1","raft_term":"2"},"token":"AAAAAAAAAAAAAAAC.2"}`,
	)
	mine, root := [2]string{"authorization", "AAAAAAAAAAAAAAAB.1"}, [2]string{"authorization", "AAAAAAAAAAAAAAAC.2"}
	for _, c := range []struct {
		path, body string
		header     [2]string
		want       string
	}{
		{rangePath, get, mine, `200 {"header":{"revision":"1","raft_term":"2"}}`},
		{rangePath, get, [2]string{"authorization", "Bearer AAAAAAAAAAAAAAAB.1"}, invalid},
		{grantPath, `{"ID":2,"TTL":100}`, [2]string{"authorization", "x"}, invalid},
		{rangePath, `{"key":"L3Mv","range_end":"L3Mw"}`, mine, `200 {"header":{"revision":"1","raft_term":"2"}}`},
		{rangePath, `{"key":"L3Mv","range_end":"L3Mx"}`, mine, `200 {"header":{"revision":"1","raft_term":"2"}}`},
		{rangePath, `{"key":"L3Mv","range_end":"L3My"}`, mine, denied},
		{rangePath, `{"key":"L3Mv","range_end":"AA=="}`, mine, denied},
		{putPath, `{"key":"L3Iv"}`, mine, denied},
		{putPath, `{"key":"L3Iv","lease":1}`, root, `200 {"header":{"revision":"2","raft_term":"2"}}`},
		{revokePath, `{"ID":1}`, mine, denied},
		{txnPath, `{"compare":[{"key":"L3Iv"}]}`, mine, denied},
		{txnPath, `{"success":[{"requestPut":{"key":"L3MvMQ=="}}],"failure":[{"requestPut":{"key":"L3Iv"}}]}`, mine, denied},
	} {
		if got := post(s, c.path, c.body, c.header); got != c.want {
			t.Errorf("%s %s %s\ngot  %s\nwant %s", c.path, c.body, c.header, got, c.want)
		}
	}
	for range 3 { // a token lives for as long as it is used
		s.Advance(299 * time.Second)
		if got := post(s, rangePath, get, mine); !strings.HasPrefix(got, "200") {
			t.Error("a used token: ", got)
		}
	}
	if got := post(s, rangePath, get, root); got != invalid {
		t.Error("an unused token: ", got)
	}
	s.Restart(0)
	if got := post(s, rangePath, get, mine); got != invalid {
		t.Error("after a restart: ", got)
	}
}

func TestOutages(t *testing.T) {
	const terminated = "503 upstream connect error or disconnect/reset before headers. reset reason: connection termination"
	for _, c := range []struct {
		outage  Outage
		want    string
		applied bool
	}{
		{NoOutage, `200 {"header":{"revision":"2","raft_term":"2"}}`, true},
		{Refused, "503 upstream connect error or disconnect/reset before headers. reset reason: remote connection failure", false},
		{Hung, "0 ", false},
		{AnswerHung, "0 ", true},
		{Cut, terminated, false},
		{AnswerCut, terminated, true},
	} {
		s := New()
		s.SetFaults(Faults{Outage: c.outage})
		if got := post(s, putPath, `{"key":"YQ=="}`); got != c.want || s.Revision() == 2 != c.applied {
			t.Errorf("outage %d: %s, revision %d", c.outage, got, s.Revision())
		}
	}
}

func TestRestart(t *testing.T) {
	s := New()
	post(s, grantPath, `{"ID":1,"TTL":10}`)
	post(s, putPath, `{"key":"YQ==","lease":1}`)
	s.Advance(9 * time.Second)
	s.Restart(2 * time.Second)
	s.Advance(2*time.Second - 1)
	expect(t, s, putPath, `{"key":"Yg=="}`, "0 ")
	s.Advance(1)
	expect(t, s,
		rangePath, `{"key":"YQ==","count_only":true}`, `200 {"header":{"revision":"2","raft_term":"3"},"count":"1"}`,
		ttlPath, `{"ID":1}`, `200 {"header":{"revision":"2","raft_term":"3"},"ID":"1","TTL":"10","grantedTTL":"10"}`)
	s.Advance(11 * time.Second)
	if s.Revision() != 3 {
		t.Error("the lease is still there after its TTL and a second: revision ", s.Revision())
	}
}

func TestLatency(t *testing.T) {
	s := New()
	s.SetFaults(Faults{Latency: 3, ReadLatency: 40})
	for _, c := range []struct {
		path, body string
		want       time.Duration
	}{
		{rangePath, `{"key":"YQ=="}`, 43},
		{putPath, `{"key":"YQ=="}`, 3},
		{txnPath, `{"success":[{"requestRange":{"key":"YQ=="}}]}`, 43},
		{txnPath, createTxn, 3},
	} {
		if a := s.answer(http.MethodPost, c.path, nil, []byte(c.body)); a.after != c.want {
			t.Errorf("%s %s: answered after %d, want %d", c.path, c.body, a.after, c.want)
		}
	}
}

func TestCoversPrefixes(t *testing.T) {
	for _, c := range []struct {
		prefixes []string
		key, end string
		want     bool
	}{
		{nil, "a", "", false},
		{[]string{""}, "a", "\x00", true},
		{[]string{"a"}, "a", "b", true},
		{[]string{"a"}, "a", "b\x00", false},
		{[]string{"a", "ab", "b"}, "ab", "bz", true},
		{[]string{"\xff"}, "\xff", "\x00", true},
		{[]string{"a"}, "a", "\x00", false},
		{[]string{"a", "c"}, "a", "d", false},
	} {
		u := User{Prefixes: slices.Clone(c.prefixes)}
		if got := u.covers(c.key, c.end); got != c.want {
			t.Errorf("prefixes %q, range %q to %q: %v", c.prefixes, c.key, c.end, got)
		}
	}
}

func BenchmarkCreateTxn(b *testing.B) {
	s := New()
	post(s, grantPath, `{"ID":7,"TTL":60}`)
	post(s, txnPath, createTxn)
	headers := hostsim.Headers{{":method", "POST"}}
	b.ReportAllocs()
	for b.Loop() {
		s.Handle("POST", txnPath, headers, []byte(createTxn))
	}
}

func BenchmarkClone(b *testing.B) {
	s := New()
	for i := range 100 {
		post(s, putPath, fmt.Sprintf(`{"key":%q}`, appendBytes(nil, fmt.Sprint(i))[1:5]))
	}
	b.ReportAllocs()
	for b.Loop() {
		s.Clone()
	}
}
