//go:build etcd

package etcd

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

var (
	seeds    = flag.Int("seeds", 6, "sequences of random requests")
	seed     = flag.Uint64("seed", 1, "the first sequence's seed")
	requests = flag.Int("requests", 800, "requests in each sequence")
)

// real is an etcd server of its own: package etcd-server of Debian 12, 3.4.23.
type real struct {
	t       *testing.T
	command *exec.Cmd
	args    []string
	url     string
	said    bytes.Buffer
}

func startReal(t *testing.T) *real {
	t.Helper()
	client, peer := freePort(t), freePort(t)
	r := &real{t: t, url: "http://" + client, args: []string{
		"--data-dir", filepath.Join(t.TempDir(), "data"), "--unsafe-no-fsync", "--bcrypt-cost", "4",
		"--logger", "zap", "--log-level", "error", "--log-outputs", "stderr",
		"--listen-client-urls", "http://" + client, "--advertise-client-urls", "http://" + client,
		"--listen-peer-urls", "http://" + peer, "--initial-advertise-peer-urls", "http://" + peer,
		"--initial-cluster", "default=http://" + peer,
	}}
	r.start()
	t.Cleanup(r.stop)
	return r
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

func (r *real) start() {
	r.t.Helper()
	r.command = exec.Command("etcd", r.args...)
	r.command.Stderr = &r.said
	if err := r.command.Start(); err != nil {
		r.t.Fatal(err)
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		reply, err := http.Post(r.url+"/v3/lease/timetolive", "application/json", strings.NewReader(`{"ID":1}`))
		if err == nil {
			reply.Body.Close()
			if reply.StatusCode == http.StatusOK {
				return
			}
		}
		if time.Now().After(deadline) {
			r.t.Fatal("etcd does not answer: ", err)
		}
	}
}

func (r *real) stop() {
	_ = r.command.Process.Signal(syscall.SIGTERM)
	_ = r.command.Wait()
	if r.t.Failed() {
		r.t.Logf("etcd said: %s", &r.said)
	}
}

func (r *real) Handle(method, path string, headers hostsim.Headers, body []byte) (int, []byte) {
	r.t.Helper()
	request, err := http.NewRequest(method, r.url+path, bytes.NewReader(body))
	if err != nil {
		r.t.Fatal(err)
	}
	for _, header := range headers {
		request.Header.Set(header[0], header[1])
	}
	reply, err := http.DefaultClient.Do(request)
	if errors.Is(err, io.EOF) {
		return cut.status, cut.body
	}
	if err != nil {
		r.t.Fatalf("%s %s %s: %v", method, path, body, err)
	}
	defer reply.Body.Close()
	text, err := io.ReadAll(reply.Body)
	if err != nil {
		r.t.Fatalf("%s %s %s: %v", method, path, body, err)
	}
	return reply.StatusCode, text
}

var (
	idsIn    = regexp.MustCompile(`"cluster_id":"[0-9]+","member_id":"[0-9]+"`)
	chosenIn = regexp.MustCompile(`"ID":"[0-9]{7,}"`)
	tokenIn  = regexp.MustCompile(`"token":"[A-Za-z]{16}\.[0-9]+"`)
	ttlIn    = regexp.MustCompile(`(,"TTL":"[0-9]+")?,"grantedTTL":`)
	keysIn   = regexp.MustCompile(`"keys":\[[^]]*\]`)
	textIn   = regexp.MustCompile(`^\{"error":"(.*)","message":"(.*)","code":`)
)

// comparable takes out of a reply what is no business of the simulation's: the ids of cluster and member, those of leases that
// the server chose, tokens, and what a JSON decoder says. The seconds that a lease has left are returned instead. A lease's
// keys, which etcd lists in any order, are sorted.
func comparable(reply []byte) (_ string, left int) {
	reply = idsIn.ReplaceAll(reply, []byte(`"cluster_id":"","member_id":""`))
	reply = chosenIn.ReplaceAll(reply, []byte(`"ID":"chosen"`))
	reply = tokenIn.ReplaceAll(reply, []byte(`"token":""`))
	reply = ttlIn.ReplaceAllFunc(reply, func(b []byte) []byte {
		_, seconds, _ := bytes.Cut(b, []byte(`"TTL":"`))
		seconds, _, _ = bytes.Cut(seconds, []byte(`"`))
		left, _ = strconv.Atoi(string(seconds))
		return []byte(`,"grantedTTL":`)
	})
	reply = keysIn.ReplaceAllFunc(reply, func(b []byte) []byte {
		var list []string
		_ = json.Unmarshal(b[len(`"keys":`):], &list)
		slices.Sort(list)
		return fmt.Append(nil, list)
	})
	if parts := textIn.FindSubmatch(reply); parts != nil && !bytes.HasPrefix(parts[1], []byte("etcdserver: ")) {
		reply = textIn.ReplaceAll(reply, []byte(`{"error":"","message":"","code":`))
	}
	return string(reply), left
}

// revokeShort revokes what a grant has granted if etcd alone knew when it expires, or what it is called.
func (r *real) revokeShort(s *Server, path string, status int, reply, simReply []byte, as [2]hostsim.Headers) {
	if path != grantPath || status != http.StatusOK || find(reply, "TTL") > 500 && find(reply, "ID") < leaseIDs {
		return
	}
	r.Handle("POST", revokePath, as[0], fmt.Appendf(nil, `{"ID":%d}`, find(reply, "ID")))
	s.Handle("POST", revokePath, as[1], fmt.Appendf(nil, `{"ID":%d}`, find(simReply, "ID")))
}

// find returns a number of a reply, or 0.
func find(reply []byte, name string) int64 {
	var object map[string]any
	_ = json.Unmarshal(reply, &object)
	text, _ := object[name].(string)
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}

// same fails the test if two replies differ in more than comparable leaves, by the byte.
func same(t *testing.T, what string, status int, body []byte, simStatus int, simBody []byte) bool {
	t.Helper()
	want, wantLeft := comparable(body)
	got, gotLeft := comparable(simBody)
	ok := status == simStatus && want == got && max(wantLeft, gotLeft)-min(wantLeft, gotLeft) <= 1
	if !ok {
		t.Errorf("%s\netcd       %d %s\nsimulation %d %s", what, status, body, simStatus, simBody)
	}
	return ok
}

func TestRealRandom(t *testing.T) {
	r := startReal(t)
	revision := New()
	statuses := map[string]int{}
	start := time.Now()
	for n := *seed; n < *seed+uint64(*seeds); n++ {
		s := New()
		s.store.revision = revision.store.revision
		g := generator{rand: rand.New(rand.NewPCG(n, 0))}
		for i := range *requests {
			method, path, body := g.request()
			s.AdvanceTo(time.Since(start))
			status, reply := r.Handle(method, path, nil, body)
			simStatus, simReply := s.Handle(method, path, nil, body)
			statuses[fmt.Sprint(path, " ", status)]++
			what := fmt.Sprintf("seed %d, request %d: %s %s %s", n, i, method, path, body)
			if !same(t, what, status, reply, simStatus, simReply) {
				t.FailNow()
			}
			r.revokeShort(s, path, status, reply, simReply, [2]hostsim.Headers{})
		}
		// The next sequence begins with an empty store, too.
		both(t, r, s, deletePath, `{"key":"AA==","range_end":"AA=="}`)
		both(t, r, s, rangePath, `{"key":"AA==","range_end":"AA=="}`)
		for id := range int64(leaseIDs) {
			body := fmt.Appendf(nil, `{"ID":%d}`, id)
			r.Handle("POST", "/v3/lease/revoke", nil, body)
		}
		revision = s
	}
	t.Logf("%d requests in %v", *seeds**requests, time.Since(start).Round(time.Millisecond))
	var lines []string
	for what, n := range statuses {
		if n > 3 {
			lines = append(lines, fmt.Sprintf("%s %d", what, n))
		}
	}
	slices.Sort(lines)
	t.Log(strings.Join(lines, ", "))
}

const leaseIDs = 6

// generator makes requests, most of which are sound.
type generator struct {
	rand *rand.Rand
	// ascending is to make no range that ends before it begins.
	ascending bool
}

func pick[T any](g *generator, of ...T) T { return of[g.rand.IntN(len(of))] }

func (g *generator) chance(percent int) bool { return g.rand.IntN(100) < percent }

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func (g *generator) key() any {
	if g.chance(1) {
		return pick[any](g, "", nil, []int{97}, 3, "YQ", "_w==", "-w==", "YQ==\n", "====")
	}
	return b64(pick(g, "a", "b", "c", "/s/1", "/s/2", "/s/12", "/r/x/1", "/r/x/2", "\xff", "\x00", "a\x00"))
}

// rangeEnd sets the end of a range whose key is set.
func (g *generator) rangeEnd(m map[string]any) {
	if g.ascending {
		span := pick(g, [2]string{"/s/", "/s0"}, [2]string{"/s/1", "/s/2"}, [2]string{"/r/", "/s0"}, [2]string{"/r/x", "/r/y"},
			[2]string{"/r0", "/s"}, [2]string{"/s/", "/s1"}, [2]string{"/s/1", "\x00"}, [2]string{"a", "b"}, [2]string{"/s0", "/s1"})
		m["key"] = b64(span[0])
		g.set(m, "range_end", b64(span[1]))
		return
	}
	g.set(m, "range_end", b64(pick(g, "\x00", "/s0", "/s/2", "/r0", "b", "c", "d", "a", "\xff\xff", "/")))
}

func (g *generator) value() any {
	return b64(pick(g, "", "x", "y", "10.0.0.1:8000", strings.Repeat("long", 40), "\xff\x00"))
}

func (g *generator) number(n int64) any {
	if g.chance(1) {
		return pick[any](g, "", "x", "1.0", 1.5, "007", " 2 ", "null", nil, true, "9223372036854775808", "-0", []int{1}, "1e2")
	}
	if g.chance(50) {
		return strconv.FormatInt(n, 10)
	}
	return n
}

func (g *generator) truth() any {
	if g.chance(1) {
		return pick[any](g, "true", 1, nil)
	}
	return g.chance(80)
}

func (g *generator) enum(names ...string) any {
	if g.chance(1) && names[0] != "KEY" { // of an unknown target to sort by, etcd dies
		return pick[any](g, "none", "", nil, 1.5, "1", true)
	}
	i := g.rand.IntN(len(names))
	if g.chance(30) {
		return i
	}
	return names[i]
}

// set sets a field of several words under one of its names.
func (g *generator) set(m map[string]any, name string, value any) {
	if g.chance(50) {
		words := strings.Split(name, "_")
		for i := range words[1:] {
			words[i+1] = strings.ToUpper(words[i+1][:1]) + words[i+1][1:]
		}
		name = strings.Join(words, "")
	}
	m[name] = value
}

func (g *generator) rangeRequest() map[string]any {
	m := map[string]any{"key": g.key()}
	if g.chance(50) {
		g.rangeEnd(m)
	}
	if g.chance(20) {
		m["limit"] = g.number(int64(g.rand.IntN(4)))
	}
	if g.chance(3) {
		m["revision"] = g.number(1 << 40)
	}
	for _, name := range []string{"count_only", "keys_only", "serializable"} {
		if g.chance(15) {
			g.set(m, name, g.truth())
		}
	}
	for _, name := range []string{"min_mod_revision", "max_mod_revision", "min_create_revision", "max_create_revision"} {
		if g.chance(5) {
			g.set(m, name, g.number(int64(g.rand.IntN(3000))))
		}
	}
	if g.chance(10) {
		g.set(m, "sort_order", g.enum("NONE", "ASCEND", "DESCEND"))
	}
	if g.chance(10) {
		g.set(m, "sort_target", g.enum("KEY", "VERSION", "CREATE", "MOD", "VALUE"))
	}
	return m
}

func (g *generator) putRequest(ignore bool) map[string]any {
	m := map[string]any{"key": g.key()}
	if g.chance(90) {
		m["value"] = g.value()
	}
	if g.chance(40) {
		m["lease"] = g.number(int64(g.rand.IntN(leaseIDs)))
	}
	if g.chance(20) {
		g.set(m, "prev_kv", g.truth())
	}
	if ignore && g.chance(20) {
		g.set(m, "ignore_value", true)
		if g.chance(90) {
			delete(m, "value")
		}
	}
	if ignore && g.chance(10) {
		g.set(m, "ignore_lease", true)
		if g.chance(90) {
			delete(m, "lease")
		}
	}
	return m
}

func (g *generator) deleteRequest(endless bool) map[string]any {
	m := map[string]any{"key": g.key()}
	if g.chance(30) {
		g.rangeEnd(m)
		for _, name := range []string{"range_end", "rangeEnd"} {
			if !endless && m[name] == b64("\x00") {
				delete(m, name)
			}
		}
	}
	if g.chance(30) {
		g.set(m, "prev_kv", g.truth())
	}
	return m
}

func (g *generator) compare() map[string]any {
	m := map[string]any{"key": g.key()}
	target := g.rand.IntN(5)
	names := []string{"VERSION", "CREATE", "MOD", "VALUE", "LEASE"}
	if g.chance(95) {
		m["target"] = any(names[target])
		if g.chance(20) {
			m["target"] = target
		}
	}
	if g.chance(50) {
		m["result"] = g.enum("EQUAL", "GREATER", "LESS", "NOT_EQUAL")
	}
	if g.chance(10) {
		g.rangeEnd(m)
	}
	if g.chance(5) {
		target = g.rand.IntN(5)
	}
	switch n := int64(g.rand.IntN(4)); {
	case g.chance(10):
	case target == 0:
		m["version"] = g.number(n)
	case target == 1:
		g.set(m, "create_revision", g.number(n*700))
	case target == 2:
		g.set(m, "mod_revision", g.number(n*700))
	case target == 3:
		m["value"] = g.value()
	case target == 4:
		m["lease"] = g.number(n)
	}
	return m
}

func (g *generator) ops(depth int, reading bool) []any {
	var out []any
	// etcd dies of a put that is to keep a value which the same transaction has deleted unnoticed, by a range without end.
	endless := g.chance(20)
	for range g.rand.IntN(4) {
		m := map[string]any{}
		switch n := g.rand.IntN(100); {
		case n < 1:
			if g.chance(30) {
				out = append(out, nil)
			}
		case n < 2:
			g.set(m, "request_put", nil)
		case reading || n < 30:
			g.set(m, "request_range", g.rangeRequest())
		case n < 70:
			g.set(m, "request_put", g.putRequest(!endless))
		case n < 90 || depth == 0:
			g.set(m, "request_delete_range", g.deleteRequest(endless && depth == 2))
		default:
			if endless {
				g.set(m, "request_txn", g.txn(0))
				continue
			}
			g.set(m, "request_txn", g.txn(depth-1))
		}
		out = append(out, m)
	}
	return out
}

func (g *generator) txn(depth int) map[string]any {
	m := map[string]any{}
	var compares []any
	for range g.rand.IntN(3) {
		compares = append(compares, g.compare())
	}
	reading := g.chance(20)
	m["compare"], m["success"], m["failure"] = compares, g.ops(depth, reading), g.ops(depth, reading)
	if g.chance(5) {
		delete(m, pick(g, "compare", "success", "failure"))
	}
	return m
}

func (g *generator) request() (method, path string, body []byte) {
	method = "POST"
	var m map[string]any
	switch n := g.rand.IntN(100); {
	case n < 15:
		path, m = rangePath, g.rangeRequest()
	case n < 35:
		path, m = putPath, g.putRequest(true)
	case n < 43:
		path, m = deletePath, g.deleteRequest(true)
	case n < 80:
		path, m = txnPath, g.txn(2)
	case n < 87:
		path, m = grantPath, map[string]any{
			"ID": g.number(int64(1 + g.rand.IntN(leaseIDs-1))), "TTL": g.number(int64(1000 + g.rand.IntN(9))),
		}
		if g.chance(5) {
			m["TTL"] = pick[any](g, 9000000001, "9000000000")
		}
	case n < 90:
		path, m = revokePath, map[string]any{"ID": g.number(int64(g.rand.IntN(leaseIDs)))}
	case n < 95:
		path, m = ttlPath, map[string]any{"ID": g.number(int64(g.rand.IntN(leaseIDs))), "keys": g.truth()}
	case n < 98:
		path, m = alivePath, map[string]any{"ID": g.number(int64(g.rand.IntN(leaseIDs)))}
	case n < 99:
		path, m = authPath, map[string]any{"name": "root", "password": "secret"}
	default:
		method = pick(g, "GET", "PUT", "POST")
		path = pick(g, "/v3/kv/range", "/v3/kv/rang", "/v3/kv/put", "/v3alpha/kv/range", "/v3beta/kv/range", "/v3/kv/range?x=y")
	}
	if m != nil && g.chance(3) {
		m["unknown"] = pick[any](g, 1, "x", nil, []any{map[string]any{"key": "x"}})
	}
	if m != nil {
		body, _ = json.Marshal(m)
	}
	if g.chance(6) && len(body) > 2 {
		body = g.broken(body)
	}
	return method, path, body
}

// broken changes a few bytes, or what surrounds the request.
func (g *generator) broken(body []byte) []byte {
	at := g.rand.IntN(len(body))
	switch g.rand.IntN(8) {
	case 0:
		return body[:at]
	case 1:
		return slices.Delete(slices.Clone(body), at, at+1)
	case 2:
		return slices.Insert(slices.Clone(body), at, pick(g, []byte(`"{}[],:\ 0an`)...))
	case 3:
		return slices.Concat([]byte(" \n\t"), body, []byte(pick(g, " ", "}", "x", "\x00", string(body))))
	case 4:
		return []byte(pick(g, "null", "nullx", "{}", "[]", "1", `""`, " ", "\n", "true", "nul", "-", "1 2"))
	case 5:
		return bytes.Replace(body, []byte(`"key":`), []byte(pick(g, `"k\u0065y":`, `"key":null,"key":`, `"Key":`, `"key":"eA==","key":`)), 1)
	case 6:
		return bytes.ReplaceAll(body, []byte(":"), []byte(" : "))
	}
	return bytes.Replace(body, []byte(`"`), []byte(pick(g, `"\`, `'`, "\"\n", `""`)), 1)
}

// both sends a request to both servers, fails the test unless they answer alike, and returns what etcd and the simulation say.
func both(t *testing.T, r *real, s *Server, path, body string, headers ...[2]string) (reply, simReply []byte) {
	t.Helper()
	status, reply := r.Handle("POST", path, headers, []byte(body))
	simStatus, simReply := s.Handle("POST", path, headers, []byte(body))
	same(t, fmt.Sprint(path, " ", body, " ", headers), status, reply, simStatus, simReply)
	return reply, simReply
}

// set sends a request that only etcd understands.
func (r *real) set(path, body string) {
	r.t.Helper()
	if status, reply := r.Handle("POST", path, nil, []byte(body)); status != http.StatusOK {
		r.t.Fatalf("%s %s: %d %s", path, body, status, reply)
	}
}

func TestRealAuth(t *testing.T) {
	r, s := startReal(t), New()
	for _, user := range []string{"root", "gateway"} {
		r.set("/v3/auth/user/add", `{"name":"`+user+`","password":"secret"}`)
		r.set("/v3/auth/role/add", `{"name":"`+user+`"}`)
		r.set("/v3/auth/user/grant", `{"user":"`+user+`","role":"`+user+`"}`)
	}
	for _, prefix := range [][2]string{{"/s/", "/s0"}, {"/r/", "/r0"}} {
		r.set("/v3/auth/role/grant", fmt.Sprintf(`{"name":"gateway","perm":{"permType":"READWRITE","key":%q,"range_end":%q}}`,
			b64(prefix[0]), b64(prefix[1])))
	}
	r.set("/v3/auth/enable", `{}`)
	s.EnableAuth(map[string]User{
		"root": {Password: "secret", Root: true}, "gateway": {Password: "secret", Prefixes: []string{"/s/", "/r/"}},
	})
	both(t, r, s, authPath, `{"name":"gateway","password":"x"}`)
	both(t, r, s, authPath, `{"name":"nobody","password":"secret"}`)
	both(t, r, s, authPath, ``)
	both(t, r, s, authPath, `{"name":1}`)
	tokenOf := func(reply []byte) string {
		var object struct{ Token string }
		_ = json.Unmarshal(reply, &object)
		return object.Token
	}
	// For each user the headers to etcd and to the simulation.
	headers := [][2]hostsim.Headers{{}, {{{"authorization", "AAAAAAAAAAAAAAAA.9"}}, {{"authorization", "AAAAAAAAAAAAAAAA.9"}}}}
	for _, user := range []string{"gateway", "gateway", "gateway", "root"} {
		reply, simReply := both(t, r, s, authPath, `{"name":"`+user+`","password":"secret"}`)
		headers = append(headers, [2]hostsim.Headers{{{"authorization", tokenOf(reply)}}, {{"authorization", tokenOf(simReply)}}})
	}
	start := time.Now()
	g := generator{rand: rand.New(rand.NewPCG(*seed, 1)), ascending: true}
	for i := range *requests * 2 {
		method, path, body := g.request()
		if path == authPath {
			continue
		}
		as := headers[g.rand.IntN(len(headers))]
		s.AdvanceTo(time.Since(start))
		status, reply := r.Handle(method, path, as[0], body)
		simStatus, simReply := s.Handle(method, path, as[1], body)
		if !same(t, fmt.Sprintf("request %d: %s %s %s %s", i, method, path, body, as[0]), status, reply, simStatus, simReply) {
			t.FailNow()
		}
		r.revokeShort(s, path, status, reply, simReply, headers[len(headers)-1])
	}
	// The operations of a nested transaction are not held against the user's role.
	for path, body := range map[string]string{
		txnPath: `{"success":[{"requestTxn":{"compare":[{"key":"YQ=="}],"success":[{"requestPut":{"key":"YQ=="}}],` +
			`"failure":[{"requestPut":{"key":"YQ=="}}]}}]}`,
		putPath: `{"key":"YQ=="}`,
	} {
		status, reply := r.Handle("POST", path, headers[2][0], []byte(body))
		simStatus, simReply := s.Handle("POST", path, headers[2][1], []byte(body))
		same(t, path, status, reply, simStatus, simReply)
		t.Logf("as gateway: %s %d", path, status)
	}
	r.stop()
	r.start()
	s.Restart(0)
	for _, as := range headers[1:] {
		status, reply := r.Handle("POST", rangePath, as[0], []byte(`{"key":"YQ=="}`))
		simStatus, simReply := s.Handle("POST", rangePath, as[1], []byte(`{"key":"YQ=="}`))
		same(t, "after a restart", status, reply, simStatus, simReply)
	}
}

func TestRealLeases(t *testing.T) {
	r, s := startReal(t), New()
	start := time.Now()
	both(t, r, s, grantPath, `{"ID":1,"TTL":1}`)
	both(t, r, s, grantPath, `{"ID":2,"TTL":1000}`)
	for i := range 5 {
		both(t, r, s, putPath, fmt.Sprintf(`{"key":%q,"lease":1}`, b64(fmt.Sprint("/s/", i))))
	}
	both(t, r, s, putPath, fmt.Sprintf(`{"key":%q,"ignore_value":true,"lease":2}`, b64("/s/4")))
	time.Sleep(time.Second)
	s.AdvanceTo(time.Since(start))
	both(t, r, s, alivePath, `{"ID":1}`)
	renewed := time.Now()
	all := fmt.Sprintf(`{"key":%q,"range_end":%q}`, b64("/s/"), b64("/s0"))
	both(t, r, s, rangePath, all)
	for time.Since(renewed) < 30*time.Second {
		_, reply := r.Handle("POST", ttlPath, nil, []byte(`{"ID":1}`))
		if bytes.Contains(reply, []byte(`"TTL":"-1"`)) {
			break
		}
		time.Sleep(20 * time.Millisecond)
	}
	took := time.Since(renewed)
	t.Logf("etcd revoked a lease of 2 s after %v", took.Round(10*time.Millisecond))
	if took < 2*time.Second {
		t.Errorf("etcd revoked a lease of 2 s after %v", took)
	}
	s.AdvanceTo(time.Since(start))
	both(t, r, s, rangePath, all)
	both(t, r, s, alivePath, `{"ID":1}`)

	// Of revisions before the newest the simulation knows as much as an etcd that has compacted them.
	r.set("/v3/kv/compaction", fmt.Sprintf(`{"revision":%d}`, s.Revision()))
	for revision := range s.Revision() + 2 {
		both(t, r, s, rangePath, fmt.Sprintf(`{"key":%q,"revision":%d}`, b64("/s/4"), revision))
		both(t, r, s, txnPath, fmt.Sprintf(`{"success":[{"requestPut":{"key":%q}},{"requestRange":{"key":%q,"range_end":%q,"revision":%d}}]}`,
			b64("/s/9"), b64("/s/"), b64("/s0"), revision))
		r.Handle("POST", "/v3/kv/compaction", nil, fmt.Appendf(nil, `{"revision":%d}`, s.Revision())) // refused if it is done
	}

	s.AdvanceTo(time.Since(start))
	r.stop()
	s.Restart(time.Hour)
	r.start()
	s.Advance(time.Hour)
	both(t, r, s, rangePath, all)
	both(t, r, s, ttlPath, `{"ID":2,"keys":true}`)
}

// What random requests hardly hit.
func TestRealLimits(t *testing.T) {
	r, s := startReal(t), New()
	reads := func(n int) string {
		return strings.TrimSuffix(strings.Repeat(`{"requestRange":{"key":"YQ=="}},`, n), ",")
	}
	nested := func(depth, each int) string {
		body := `{}`
		for range depth {
			body = `{"success":[{"requestTxn":` + body + `},` + reads(each) + `]}`
		}
		return strings.ReplaceAll(body, ",]", "]")
	}
	deep := func(n int) string {
		return `{"key":"YQ==","x":` + strings.Repeat("[", n) + strings.Repeat("]", n) + `}`
	}
	both(t, r, s, putPath, `{"key":"YQ==","value":"eA=="}`)
	for _, c := range [][2]string{
		{txnPath, `{"success":[` + reads(128) + `]}`}, {txnPath, `{"failure":[` + reads(129) + `]}`},
		{txnPath, nested(128, 0)}, {txnPath, nested(129, 0)}, {txnPath, nested(2, 63)}, {txnPath, nested(2, 64)},
		{rangePath, deep(9999)}, {rangePath, deep(10000)},
		{rangePath, `{"key":"YQ==","sort_order":7}`}, {rangePath, `{"key":"YQ==","sort_order":7,"sort_target":1}`},
		{rangePath, `{"key":"YQ==","sort_order":2147483648}`}, {rangePath, `{"key":"YQ==","revision":-1}`},
		{rangePath, `{"key":"YQ==","revision":2}`}, {rangePath, `{"key":"YQ==","revision":3}`},
		{rangePath, `{"key":[97]}`}, {rangePath, `{"key":[97,null,256]}`}, {rangePath, `{"key":"\u0059Q=="}`}, {rangePath, `{"key":"YQ\n=="}`},
		{rangePath, `{"key":"YQ==","limit":"\u0031"}`}, {rangePath, `{"key":"YQ==","limit":9223372036854775807}`},
		{rangePath, `{"key":"YQ==","sort_order":"\u004eONE"}`}, {rangePath, `{"range_end":"Yg==","rangeEnd":"YQ==","key":"YQ=="}`},
		{rangePath, `{"key":"YQ==","serializable":1}`}, {rangePath, "\ufeff{}"}, {rangePath, "{\"key\":\"YQ==\",\"\xff\":1}"},
		{txnPath, `{"compare":[{"key":"YQ==","result":9}]}`}, {txnPath, `{"compare":[{"key":"YQ==","target":9}]}`},
		{txnPath, `{"compare":[{"key":"YQ==","target_union":null}]}`}, {txnPath, `{"compare":[{"key":"YQ==","target_union":1}]}`},
		{txnPath, `{"compare":[{"key":"YQ==","targetUnion":1}]}`}, {txnPath, `{"compare":[{"key":"YQ==","target":"VALUE","value":null}]}`},
		{txnPath, `{"success":[{"request":1}]}`}, {txnPath, `{"success":[{"request":null,"requestRange":{"key":"YQ=="}}]}`},
		{txnPath, `{"success":[{"requestRange":null}]}`}, {txnPath, `{"success":{}}`}, {txnPath, `{"success":[1]}`},
		{txnPath, `{"compare":[null],"success":"x"}`}, {txnPath, `{"success":[{"requestTxn":{"failure":[null]}}]}`},
		{grantPath, `{"ID":-5,"TTL":-5}`}, {grantPath, `{"ID":-5}`}, {revokePath, `{"ID":-5}`}, {revokePath, ``},
		{grantPath, `{"ID":9223372036854775807,"TTL":9000000000}`}, {grantPath, `{"ID":3,"TTL":9000000001}`}, {ttlPath, ``},
		{alivePath, ``}, {alivePath, `null`}, {alivePath, `{"ID":5}{"ID":6}`}, {alivePath, `{"ID":5}x`}, {alivePath, `{"ID":"x"}`}, {alivePath, ` `},
		{alivePath, `{"ID":5}{"ID":"x"}{"ID":6}`}, {"/v3/kv/lease/revoke", `{"ID":1}`}, {"/v3/kv/lease/timetolive", `{"ID":1}`},
		{"/v3/kv/range/", `{}`}, {"/v3/", `{}`}, {"/v3/kv/range:x", `{}`}, {"/v3beta/lease/grant", `[]`},
	} {
		both(t, r, s, c[0], c[1])
	}
}
