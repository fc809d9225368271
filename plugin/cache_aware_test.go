package plugin

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// startCacheAware runs the module under cache_aware in a gateway that shows it
// bodies while requests wait.
func startCacheAware(t testing.TB, workers int, config string) *gateway {
	t.Helper()
	return startReading(t, workers, true, config+named("cache_aware"))
}

// asks is a first or a later turn of the session with that chat.
func asks(id string, messages ...string) hosttest.Request {
	return with(chat(`{"model":"m","messages":[{"role":"system","content":"`+strings.Join(messages, `"},{"role":"user","content":"`)+`"}],"seed":1}`),
		[2]string{"x-session-id", id})
}

// text is n letters that are drawn by seed.
func text(seed uint64, n int) string {
	r := rand.New(rand.NewPCG(seed, 5))
	b := make([]byte, n)
	for i := range b {
		b[i] = 'a' + byte(r.Uint32()%26)
	}
	return string(b)
}

// Which bodies are waited for, and what of them counts, by the replica that a
// session is placed on: the prompt is known on one of three.
func TestWhatCacheAwareReads(t *testing.T) {
	known := text(1, 4000)
	other := text(2, 4000)
	for _, tt := range []struct {
		name    string
		request hosttest.Request
		known   bool
	}{
		{"the same chat", asks("s", known, "hello"), true},
		{"a chat that goes on", asks("s", known, "hello", text(3, 3000)), true},
		{"another chat", asks("s", other, "hello"), false},
		{"byte by byte", hosttest.Request{
			Headers: hostsim.Headers{{"content-type", "application/json"}, {"x-session-id", "s"}},
			Chunks:  strings.Split(asks("s", known, "hello").Chunks[0], ""),
		}, true},
		{"other members first", with(chat(`{"seed":2,"tools":["`+other+`"],`+asks("s", known, "hello").Chunks[0][1:]), [2]string{"x-session-id", "s"}), true},
		{"behind what is read", with(chat(`{"tools":["`+text(4, 70_000)+`"],`+asks("s", known, "hello").Chunks[0][1:]), [2]string{"x-session-id", "s"}), false},
		{"no JSON type", hosttest.Request{Headers: hostsim.Headers{{"content-type", "text/plain"}, {"x-session-id", "s"}}, Body: asks("s", known).Chunks[0]}, false},
		{"no body", hosttest.Request{Headers: hostsim.Headers{{"content-type", "application/json"}, {"x-session-id", "s"}}}, false},
		{"no session", chat(asks("", known).Chunks...), false},
	} {
		g := startCacheAware(t, 2, threeReplicas)
		home := g.do(asks("first", known)).replica
		g.do(asks("second", text(9, 1000))) // the next least loaded is the third replica
		r := g.do(tt.request)
		if r.Status != 200 || (r.replica == home) != tt.known {
			t.Errorf("%s: %d %s on %s, the prompt is known on %s", tt.name, r.Status, r.reason, r.replica, home)
		}
		if sent := tt.request.Body + strings.Join(tt.request.Chunks, ""); r.RequestBody != sent {
			t.Errorf("%s: %d of %d bytes arrived", tt.name, len(r.RequestBody), len(sent))
		}
	}
}

// The decision log says how much of the prompt the replica was known to hold.
func TestDecisionLogTellsThePrefix(t *testing.T) {
	g := startCacheAware(t, 1, threeReplicas+`,"decision_log":{"enabled":true}`)
	first := text(1, 8000)
	for _, id := range []string{"a", "b"} {
		g.do(asks(id, first, text(2, 8000)))
	}
	g.do(asks("b", first))
	g.do(asks("c", text(3, 8000)))
	var got []string
	for _, l := range g.Logs() {
		if _, rest, ok := strings.Cut(l.Message, `,"prefix":`); ok {
			share, _, _ := strings.Cut(rest, ",")
			got = append(got, share)
		} else if strings.Contains(l.Message, `"pinwheel":"decision"`) {
			got = append(got, "-")
		}
	}
	// A prefix ends at the last of its hashed lengths.
	if want := []string{"0.00", "0.94", "-", "0.00"}; !slices.Equal(got, want) {
		t.Errorf("prefixes %v, want %v", got, want)
	}
}

// A pinned turn goes on at its headers: it reads its shard and nothing of the index.
func TestPinnedTurnsLeaveTheIndexAlone(t *testing.T) {
	g := startCacheAware(t, 2, threeReplicas)
	prompt := text(1, 20_000)
	g.on(0, asks("s", prompt))
	var asked []string
	g.OnSharedData(func(_ int, op hostsim.SharedOp, key string) { asked = append(asked, fmt.Sprint(op, " ", key)) })
	for range 6 {
		s := g.Worker(0).NewStream()
		h := turnHeaders("s")
		h.Add("content-type", "application/json")
		if step, err := s.RequestHeaders(h, false); err != nil || step.Flow != hostsim.Forward {
			t.Fatalf("%v, %v", step.Flow, err)
		}
		if _, err := s.RequestBody([]byte(asks("s", prompt).Chunks[0]), true); err != nil {
			t.Fatal(err)
		}
		g.end(s, hostsim.EndNormal)
	}
	g.OnSharedData(nil)
	for _, a := range asked {
		if !strings.Contains(a, "/s/") {
			t.Errorf("six pinned turns: %s", a)
		}
	}
	if len(asked) != 6 {
		t.Errorf("%d accesses for six pinned turns: %v", len(asked), asked)
	}
}

func TestPoolsHaveTheirOwnIndexes(t *testing.T) {
	g := startReading(t, 2, true, `"policy":"cache_aware","pools":[
		{"name":"a","cluster":"ca","replicas":["10.0.0.1:1","10.0.0.2:1","10.0.0.3:1"]},
		{"name":"b","cluster":"cb","replicas":["10.0.0.1:1","10.0.0.2:1","10.0.0.3:1"]},
		{"name":"c","cluster":"cc","replicas":["10.0.0.1:1","10.0.0.2:1","10.0.0.3:1"],"policy":"sticky_least_loaded"}]`)
	spread := map[string]map[string]bool{"ca": {}, "cb": {}, "cc": {}}
	for i := range 6 {
		for cluster, replicas := range spread {
			r := asks(fmt.Sprint(i), text(1, 3000))
			r.Cluster = cluster
			if cluster == "cb" {
				r = asks(fmt.Sprint(i), text(uint64(10+i), 3000))
				r.Cluster = cluster
			}
			replicas[g.do(r).replica] = true
		}
	}
	for cluster, want := range map[string]int{"ca": 1, "cb": 3, "cc": 3} {
		if got := len(spread[cluster]); got != want {
			t.Errorf("%s: six sessions on %d replicas, want %d", cluster, got, want)
		}
	}
	for _, key := range g.SharedData().Keys() {
		if strings.HasPrefix(key, keyRoot+"c/p/") {
			t.Errorf("an index of a pool that asks for none: %s", key)
		}
	}
}

// sgl-project/sglang#14532: misses went to the replica with the smallest cache. The
// first has 30 sessions and knows one prompt, the second none and knows 500: of 50
// sessions with prompts that nobody knows it gets those that make loads equal first.
func TestMissesGoByLoad(t *testing.T) {
	g := startCacheAware(t, 3, drainingSecond)
	for i := range 30 {
		g.do(asks(fmt.Sprint("a", i), text(1, 1000)))
	}
	if err := g.reconfigure(`"replicas":[{"address":"10.0.0.1:8000","state":"draining"},"10.0.0.2:8000"]` + named("cache_aware")); err != nil {
		t.Fatal(err)
	}
	for i := range 500 {
		id := fmt.Sprint("b", i)
		g.do(asks(id, text(uint64(10+i), 1000)))
		g.release(id)
	}
	g.mustOpen(30, 0)
	if err := g.reconfigure(twoReplicas + named("cache_aware")); err != nil {
		t.Fatal(err)
	}
	for i := range 50 {
		r := g.do(asks(fmt.Sprint("c", i), text(uint64(1000+i), 1000)))
		if i < 30 && r.replica != "10.0.0.2:8000" {
			t.Errorf("session %d is on the loaded replica", i)
		}
	}
	g.mustOpen(40, 40)
}

const drainingSecond = `"replicas":["10.0.0.1:8000",{"address":"10.0.0.2:8000","state":"draining"}]`

// NVIDIA-NeMo/Gym#3193: one system prompt in front of all sessions sent all of
// them to one node.
func TestASharedSystemPromptSpreads(t *testing.T) {
	g := startCacheAware(t, 3, replicas(4)+`,"cache_aware":{"balance_abs_threshold":8,"balance_rel_threshold":1.1}`)
	system := text(1, 8000)
	for i := range 200 {
		g.do(asks(fmt.Sprint("s", i), system, text(uint64(10+i), 500)))
		counts := g.open()
		least := 1 << 30
		for _, n := range counts {
			least = min(least, n)
		}
		for address, n := range counts {
			if n > least+10 && float64(n) > 1.2*float64(least) {
				t.Fatalf("after %d sessions %s has %d, another has %d", i+1, address, n, least)
			}
		}
	}
	g.mustOpen(50, 50, 50, 50)
}

// NVIDIA-NeMo/Gym#3345: with one replica far above the others affinity was off for
// every session. Here groups of sessions with equal prompts stay together on the
// other replicas.
func TestAffinityIsJudgedByReplica(t *testing.T) {
	for _, thresholds := range []string{
		`"balance_abs_threshold":4,"balance_rel_threshold":1.1`, `"balance_abs_threshold":32,"balance_rel_threshold":1.5`,
	} {
		const members = `"replicas":["10.0.0.1:8000",{"address":"10.0.0.2:8000","state":%[1]q},{"address":"10.0.0.3:8000","state":%[1]q},{"address":"10.0.0.4:8000","state":%[1]q}]`
		config := members + named("cache_aware") + `,"cache_aware":{` + thresholds + `}`
		g := startCacheAware(t, 2, fmt.Sprintf(members, "draining")+`,"cache_aware":{`+thresholds+`}`)
		for i := range 500 {
			g.turn(fmt.Sprint("hot", i))
		}
		if err := g.reconfigure(fmt.Sprintf(config, "active")); err != nil {
			t.Fatal(err)
		}
		const groups, sessions = 30, 300
		home, stayed := map[int]string{}, 0
		for i := range sessions {
			r := g.do(asks(fmt.Sprint(i), text(uint64(i%groups), 2000), text(uint64(100+i), 100)))
			if i < groups {
				home[i] = r.replica
			} else if r.replica == home[i%groups] {
				stayed++
			}
			if r.replica == "10.0.0.1:8000" {
				t.Errorf("%s: session %d is on the hot replica", thresholds, i)
			}
		}
		if stayed < (sessions-groups)*95/100 {
			t.Errorf("%s: %d of %d stayed with their group", thresholds, stayed, sessions-groups)
		}
	}
}

// vllm-project/production-stack#687: an index of prompts grew without limit. After
// 20,000 prompts of 4 KB that have nothing in common the index is full: however many
// more come, neither the module's memory nor shared data grows.
func TestPromptsWithoutReuseInFlatMemory(t *testing.T) {
	const prompts, first, most = 150_000, 20_000, 65536
	g := startCacheAware(t, 2, replicas(8)+`,"session":{"max_sessions":10000}`)
	body := []byte(asks("", text(1, 4096)).Chunks[0])
	const at = 100 // in the prompt, before its first prefix ends
	run := func(from, to int) {
		var done atomic.Int64
		g.hammer(func(w int) {
			mine := bytes.Clone(body)
			for i := from + w; i < to; i += 2 {
				binary.LittleEndian.PutUint64(mine[at:], uint64(i)|0x8080808080808080) // no quote, no backslash
				g.firstTurn(w, fmt.Sprint("s", i), mine)
				if n := done.Add(1); n%5000 == 0 {
					g.Advance(tick)
				}
			}
		})
	}
	run(0, first)
	memory, size, keys := [2]uint64{g.Worker(0).Memory(), g.Worker(1).Memory()}, g.SharedData().Bytes(), g.SharedData().Len()
	entries := 0
	for _, key := range g.SharedData().Keys() {
		if strings.HasPrefix(key, keyRoot+"default/p/") {
			value, _, _ := g.SharedData().Get(key)
			entries += policy.PrefixShard(value).Len()
		}
	}
	if entries > most || entries < most*95/100 {
		t.Errorf("%d entries after %d prompts, there is room for %d", entries, first, most)
	}
	run(first, prompts)
	for w := range memory {
		if now := g.Worker(w).Memory(); now > memory[w]+goArena || now > 32<<20 {
			t.Errorf("worker %d has %d bytes, it had %d after %d prompts", w, now, memory[w], first)
		}
	}
	// A worker's own key comes with its first tick that finds it busy.
	if n := g.SharedData().Bytes(); n > size+size/50 || g.SharedData().Len() > keys+g.Workers() {
		t.Errorf("%d bytes in %d keys, there were %d in %d after %d prompts", n, g.SharedData().Len(), size, keys, first)
	}
	if n := g.Metric("pinwheel_errors_total.kind.cas_exhausted"); n > 0 {
		t.Errorf("%d times no try went through", n)
	}
}

// firstTurn runs a session of one turn with that body, without what hosttest adds.
func (g *gateway) firstTurn(worker int, id string, body []byte) {
	s := g.Worker(worker).NewStream()
	h := turnHeaders(id)
	h.Add("content-type", "application/json")
	_, err := s.RequestHeaders(h, false)
	if err == nil {
		_, err = s.RequestBody(body, true)
	}
	if err == nil {
		_, err = s.ResponseHeaders(okHeaders, true)
	}
	if err != nil || replicaOf(s) == "" {
		g.t.Errorf("%s: %v", id, err)
	}
	g.end(s, hostsim.EndNormal)
	r := g.Worker(worker).NewStream()
	release := turnHeaders(id)
	release.Set(":path", "/finish_session")
	if _, err := r.RequestHeaders(release, true); err != nil {
		g.t.Error(err)
	}
	g.end(r, hostsim.EndNormal)
}

// BenchmarkCacheAwareFirstTurn measures a turn of the module in a simulated gateway:
// a new session with a body of 200 KB in chunks of 64 KB, which nobody knows or
// somebody does, next to a new session without a body and to a pinned turn with it.
func BenchmarkCacheAwareFirstTurn(b *testing.B) {
	const size = 200_000
	for _, bb := range []struct {
		name                 string
		policy               string
		prompts, body, fresh bool // a new prompt each, a body, a new session each
	}{
		{"policy=sticky_least_loaded/body=200KB/session=new", "sticky_least_loaded", false, true, true},
		{"policy=cache_aware/body=200KB/session=new/prompt=new", "cache_aware", true, true, true},
		{"policy=cache_aware/body=200KB/session=new/prompt=known", "cache_aware", false, true, true},
		{"policy=cache_aware/body=0/session=new", "cache_aware", false, false, true},
		{"policy=cache_aware/body=200KB/session=pinned", "cache_aware", false, true, false},
	} {
		b.Run(bb.name, func(b *testing.B) {
			g := startReading(b, 1, true, replicas(8)+`,"policy":"`+bb.policy+`","body":{"max_bytes":262144}`)
			body := []byte(asks("", text(1, size)).Chunks[0])
			n := 0
			for b.Loop() {
				if n++; bb.prompts {
					binary.LittleEndian.PutUint64(body[100:], uint64(n)|0x8080808080808080)
				}
				id := "s"
				if bb.fresh {
					id = fmt.Sprint("s", n%50_000)
				}
				s := g.Worker(0).NewStream()
				h := turnHeaders(id)
				h.Add("content-type", "application/json")
				_, err := s.RequestHeaders(h, !bb.body)
				for rest := body; bb.body && err == nil && len(rest) > 0; {
					chunk := rest[:min(len(rest), 65536)]
					rest = rest[len(chunk):]
					_, err = s.RequestBody(chunk, len(rest) == 0)
				}
				if err != nil {
					b.Fatal(err)
				}
				g.end(s, hostsim.EndNormal)
				if n%5000 == 0 {
					g.Advance(tick)
				}
			}
			b.ReportMetric(float64(g.Worker(0).Memory())/1e6, "MB-guest")
		})
	}
}
