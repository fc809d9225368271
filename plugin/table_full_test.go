package plugin

import (
	"fmt"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// ai-dynamo/dynamo#14570: the session table filled up and every new session got
// an error.
func TestAFullTableServesEveryRequest(t *testing.T) {
	const limit = 1000
	g := startGateway(t, 2, twoReplicas+fmt.Sprintf(`,"session":{"max_sessions":%d}`, limit))
	homes, spread := map[string]string{}, map[string]int{}
	for i := range 5 * limit {
		id := fmt.Sprint("s", i)
		r := g.turn(id)
		want := "placed"
		if i >= limit {
			want = "table_full"
			spread[r.replica]++
		} else {
			homes[id] = r.replica
		}
		if r.Status != 200 || r.reason != want {
			t.Fatalf("session %d: %d %s, want %s", i, r.Status, r.reason, want)
		}
	}
	g.mustOpen(limit/2, limit/2)
	if a, b := spread["10.0.0.1:8000"], spread["10.0.0.2:8000"]; a != b {
		t.Errorf("requests without room went %d and %d to two equal replicas", a, b)
	}
	for id, home := range homes {
		if r := g.turn(id); r.reason != "pinned" || r.replica != home {
			t.Fatalf("%s is %s on %s, was placed on %s", id, r.reason, r.replica, home)
		}
	}
	g.release("s7")
	if r := g.turn("late"); r.reason != "placed" || r.replica != homes["s7"] {
		t.Errorf("room was made on %s, a new session is %s on %s", homes["s7"], r.reason, r.replica)
	}
	g.Advance(2 * tick)
	if got := g.decisions(policy.TableFull); got != 4*limit {
		t.Errorf("%d turns counted without room, want %d", got, 4*limit)
	}
}

// The same issue: ids that share one bucket. They cannot be made without the
// process's secret; with it they make one shard long and nothing else.
func TestIDsOfOneShard(t *testing.T) {
	g := startGateway(t, 2, twoReplicas)
	value, _, ok := g.SharedData().Get(secretKey)
	if !ok || len(value) != len(policy.Secret{}) {
		t.Fatalf("secret of %d bytes", len(value))
	}
	shards := uint64(g.record("default").shards)
	var ids []string
	for i := 0; len(ids) < 200; i++ {
		id := fmt.Sprint("c", i)
		if policy.NewKey(policy.Secret(value), []byte(id)).Hash.Lo&(shards-1) == 5 {
			ids = append(ids, id)
		}
	}
	homes := map[string]string{}
	for range 3 {
		for _, id := range ids {
			r := g.turn(id)
			if home, known := homes[id]; r.Status != 200 || known && (r.reason != "pinned" || r.replica != home) {
				t.Fatalf("%s: %d %s on %s, was on %s", id, r.Status, r.reason, r.replica, home)
			}
			homes[id] = r.replica
		}
	}
	g.mustOpen(100, 100)
	if sh, _, _ := g.SharedData().Get(keyRoot + "default/s/00005"); shard(sh).len() != 200 {
		t.Errorf("shard 5 has %d pins, want all 200", shard(sh).len())
	}
}
