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
	"os"
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
	seeds    = flag.Int("seeds", 8, "sequences of random requests")
	seed     = flag.Uint64("seed", 1, "the first sequence's seed")
	requests = flag.Int("requests", 800, "requests in each sequence")
)

// real is an etcd server of its own: package etcd-server of Debian 12, 3.4.23.
type real struct {
	t       *testing.T
	command *exec.Cmd
	args    []string
	url     string
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
	r.command.Stderr = os.Stderr
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
			if path == "/v3/lease/grant" && status == http.StatusOK {
				// Of these, etcd alone knows when one expires, or what it is called.
				if ttl := find(reply, "TTL"); ttl < 500 || find(reply, "ID") > leaseIDs {
					r.Handle("POST", "/v3/lease/revoke", nil, fmt.Appendf(nil, `{"ID":%d}`, find(reply, "ID")))
					s.Handle("POST", "/v3/lease/revoke", nil, fmt.Appendf(nil, `{"ID":%d}`, find(simReply, "ID")))
				}
			}
		}
		// The next sequence begins with an empty store, too.
		for _, request := range [][2]string{{"/v3/kv/deleterange", `{"key":"AA==","range_end":"AA=="}`}, {"/v3/kv/range", `{"key":"AA==","range_end":"AA=="}`}} {
			status, reply := r.Handle("POST", request[0], nil, []byte(request[1]))
			simStatus, simReply := s.Handle("POST", request[0], nil, []byte(request[1]))
			if !same(t, request[0], status, reply, simStatus, simReply) {
				t.FailNow()
			}
		}
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
type generator struct{ rand *rand.Rand }

func pick[T any](g *generator, of ...T) T { return of[g.rand.IntN(len(of))] }

func (g *generator) chance(percent int) bool { return g.rand.IntN(100) < percent }

func b64(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }

func (g *generator) key() any {
	if g.chance(1) {
		return pick[any](g, "", nil, []int{97}, 3, "YQ", "_w==", "-w==", "YQ==\n", "====")
	}
	return b64(pick(g, "a", "b", "c", "/s/1", "/s/2", "/s/12", "/r/x/1", "/r/x/2", "\xff", "\x00", "a\x00"))
}

func (g *generator) rangeEnd() any {
	return b64(pick(g, "\x00", "/s0", "/s/2", "/r0", "b", "c", "d", "a", "\xff\xff", "/"))
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
		g.set(m, "range_end", g.rangeEnd())
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
		if end := g.rangeEnd(); endless || end != b64("\x00") {
			g.set(m, "range_end", end)
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
		g.set(m, "range_end", g.rangeEnd())
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
		path, m = "/v3/kv/range", g.rangeRequest()
	case n < 35:
		path, m = "/v3/kv/put", g.putRequest(true)
	case n < 43:
		path, m = "/v3/kv/deleterange", g.deleteRequest(true)
	case n < 80:
		path, m = "/v3/kv/txn", g.txn(2)
	case n < 87:
		path, m = "/v3/lease/grant", map[string]any{"ID": g.number(int64(1 + g.rand.IntN(leaseIDs-1))), "TTL": g.number(int64(1000 + g.rand.IntN(9)))}
		if g.chance(5) {
			m["TTL"] = pick[any](g, 9000000001, "9000000000")
		}
	case n < 90:
		path, m = "/v3/lease/revoke", map[string]any{"ID": g.number(int64(g.rand.IntN(leaseIDs)))}
	case n < 95:
		path, m = "/v3/lease/timetolive", map[string]any{"ID": g.number(int64(g.rand.IntN(leaseIDs))), "keys": g.truth()}
	case n < 98:
		path, m = "/v3/lease/keepalive", map[string]any{"ID": g.number(int64(g.rand.IntN(leaseIDs)))}
	case n < 99:
		path, m = "/v3/auth/authenticate", map[string]any{"name": "root", "password": "secret"}
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
