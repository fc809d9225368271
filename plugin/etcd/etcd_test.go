package etcd

import (
	"encoding/base64"
	"reflect"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/etcd"
)

var (
	keys   = Keys{Root: "/p/default/"}
	leases = Leases{Session: 7, Log: 8}
)

const (
	first, second = "10.0.0.1:8000", "[fd00::2]:8000"
	session       = "00112233445566778899aabbccddeeff"
)

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

// Bytes matter: of a misspelt name etcd says nothing.
func TestRequests(t *testing.T) {
	home, change := b64("/p/default/s/"+session), b64("/p/default/f/"+session)
	held, heldSecond := b64("/p/default/r/"+first+"/"+session), b64("/p/default/r/"+second+"/"+session)
	get := `"failure":[{"requestRange":{"key":"` + home + `"}}]}`
	ifFirst := `{"compare":[{"target":"VALUE","key":"` + home + `","value":"` + b64(first) + `"}],"success":[`
	for name, c := range map[string]struct{ got, want string }{
		"create": {keys.Create(session, first, leases), `{"compare":[{"target":"CREATE","key":"` + home + `","create_revision":"0"}],"success":[` +
			`{"requestPut":{"key":"` + home + `","value":"` + b64(first) + `","lease":"7"}},{"requestPut":{"key":"` + held + `","lease":"7"}}],` + get},
		"move": {keys.Move(session, first, second, leases), ifFirst +
			`{"requestPut":{"key":"` + home + `","value":"` + b64(second) + `","lease":"7"}},{"requestDeleteRange":{"key":"` + held + `"}},` +
			`{"requestPut":{"key":"` + heldSecond + `","lease":"7"}},{"requestPut":{"key":"` + change + `","value":"` + b64(second) + `","lease":"8"}}],` + get},
		"renew": {keys.Renew(session, first, leases), ifFirst +
			`{"requestPut":{"key":"` + home + `","ignore_value":true,"lease":"7"}},{"requestPut":{"key":"` + held + `","lease":"7"}}],` + get},
		"release": {keys.Release(session, first, leases), ifFirst +
			`{"requestDeleteRange":{"key":"` + home + `"}},{"requestDeleteRange":{"key":"` + held + `"}},{"requestPut":{"key":"` + change + `","lease":"8"}}],` + get},
		"poll": {keys.Poll(41, []string{first}), `{"success":[` +
			`{"requestRange":{"key":"` + b64("/p/default/f/") + `","range_end":"` + b64("/p/default/f0") + `","min_mod_revision":"42"}},` +
			`{"requestRange":{"key":"` + b64("/p/default/o/") + `","range_end":"` + b64("/p/default/o0") + `","min_mod_revision":"42"}},` +
			`{"requestRange":{"key":"` + b64("/p/default/r/"+first+"/") + `","range_end":"` + b64("/p/default/r/"+first+"0") + `","count_only":true}}]}`},
		"grant":        {Grant(7, 30), `{"ID":"7","TTL":"30"}`},
		"authenticate": {Authenticate(`"a"`, `"\"b"`), `{"name":"a","password":"\"b"}`},
	} {
		if c.got != c.want {
			t.Errorf("%s:\n%s, want\n%s", name, c.got, c.want)
		}
	}
}

// asks sends a transaction to the simulated etcd.
func asks(t *testing.T, s *etcd.Server, path, body string) Answer {
	t.Helper()
	status, reply := s.Handle("POST", path, nil, []byte(body))
	return Read(map[int]string{200: "200", 404: "404", 412: "412"}[status], string(reply))
}

func TestTransactions(t *testing.T) {
	s := etcd.New()
	if a := asks(t, s, TxnPath, keys.Create(session, first, leases)); a.Code != NotFound {
		t.Fatalf("without leases: %+v", a)
	}
	for _, id := range []int64{7, 8} {
		if a := asks(t, s, GrantPath, Grant(id, 60)); a.Code != OK {
			t.Fatalf("grant: %+v", a)
		}
	}
	if a := asks(t, s, GrantPath, Grant(7, 60)); a.Code != Exists {
		t.Errorf("a second grant: %+v", a)
	}
	expect := func(what, body string, succeeded bool, home string) {
		t.Helper()
		a := asks(t, s, TxnPath, body)
		if a.Code != OK || a.Succeeded != succeeded || a.Home != home || a.Revision < 1 || a.Cluster == 0 || home != "" && a.Lease != 7 {
			t.Errorf("%s: %+v, want succeeded %v, home %q", what, a, succeeded, home)
		}
	}
	expect("create", keys.Create(session, first, leases), true, "")
	expect("create again", keys.Create(session, second, leases), false, first)
	expect("move from elsewhere", keys.Move(session, second, first, leases), false, first)
	expect("move", keys.Move(session, first, second, leases), true, "")
	expect("renew where it was", keys.Renew(session, first, leases), false, second)
	expect("renew", keys.Renew(session, second, leases), true, "")
	polled := func(after int64, addresses ...string) (changes []Change, counts []uint32) {
		t.Helper()
		counts = make([]uint32, len(addresses))
		a := asks(t, s, TxnPath, keys.Poll(after, addresses))
		if !keys.Polled(a, len(addresses), func(c Change) { c.Revision = 0; changes = append(changes, c) }, func(i int, n uint32) { counts[i] = n }) {
			t.Errorf("a poll is none: %+v", a)
		}
		return changes, counts
	}
	if changes, counts := polled(1, first, second); !reflect.DeepEqual(changes, []Change{{Session: session, Home: second}}) || !reflect.DeepEqual(counts, []uint32{0, 1}) {
		t.Errorf("after a move: %+v, %v", changes, counts)
	}
	before := s.Revision()
	expect("release where it was", keys.Release(session, first, leases), false, second)
	expect("release", keys.Release(session, second, leases), true, "")
	expect("release again", keys.Release(session, second, leases), false, "")
	expect("drain", keys.Drain(second, true), true, "")
	expect("undrain", keys.Drain(first, false), true, "")
	want := []Change{{Session: session}, {Drained: first}, {Drained: second, Begins: true}}
	if changes, counts := polled(before, first, second); !reflect.DeepEqual(changes, want) || !reflect.DeepEqual(counts, []uint32{0, 0}) {
		t.Errorf("after a release: %+v, %v", changes, counts)
	}
	expect("create", keys.Create(session, first, leases), true, "")
	before = s.Revision()
	expect("reset", keys.Reset(), true, "")
	if changes, counts := polled(before, first); !reflect.DeepEqual(changes, []Change{{Reset: true}}) || counts[0] != 0 {
		t.Errorf("after a reset: %+v, %v", changes, counts)
	}
}

// etcd 3.4 and 3.7 spell errors, and what stands between values, in different ways. Source: both were run.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		status, body string
		want         Answer
	}{
		{"404", `{"error":"etcdserver: requested lease not found","message":"etcdserver: requested lease not found","code":5}`, Answer{Code: NotFound, Message: "etcdserver: requested lease not found"}},
		{"400", `{"code":9, "message":"etcdserver: lease already exists"}`, Answer{Code: Exists, Message: "etcdserver: lease already exists"}},
		{"200", `{"header":{"cluster_id":"14841639068965178418", "revision":"6006"}, "token":"x.1"}`, Answer{Cluster: 14841639068965178418, Revision: 6006, Token: "x.1"}},
		{"503", "upstream connect error", Answer{Code: NoAnswer, Message: "HTTP status 503"}},
		{"500", "{}", Answer{Code: NoAnswer, Message: "HTTP status 500"}},
		{"", "", Answer{Code: NoAnswer, Message: "HTTP status "}},
	} {
		if got := Read(c.status, c.body); !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s: %+v, want %+v", c.status, c.body, got, c.want)
		}
	}
	if a := Read("200", `{"header":{"revision":"3"}}`); keys.Polled(a, 0, nil, nil) {
		t.Errorf("an answer without responses passes for one to a poll")
	}
	if strings.Contains(keys.Poll(0, nil), `"min_mod_revision":"0"`) {
		t.Error("a first poll asks from revision 0 on, which etcd takes for none")
	}
}
