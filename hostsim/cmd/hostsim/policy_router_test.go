package main

import (
	"container/heap"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// The shipped module and the policy in this process are two ways to one decision, on every turn of a real trace (of its
// first 72 sessions, where one of the settings is another, or failures come): 112 sessions at once, replicas that drain, leave, come back and join meanwhile, sessions released at their end. Random choices
// (random, power_of_two) cannot be compared. What a worker, or a configuration, learns of running requests and of failures
// the others read at their next tick: where that matters one worker decides, and replicas drain only.
func TestWasmAndPolicyDecideAlike(t *testing.T) {
	sessions := readTrace(t, "../../trace/testdata/weka_cc_215.rl-like.compact.jsonl")
	wasm := builtWasm(t)
	for _, c := range []struct {
		policy, config  string
		workers         int
		joins, failures bool
	}{
		{policy: "sticky_least_loaded", workers: 2, joins: true},
		{policy: "sticky_least_loaded", workers: 1, failures: true},
		{policy: "sticky_least_loaded", workers: 1, failures: true, config: `{"health":{"statuses":["4xx"]}}`},
		{policy: "sticky_least_loaded", workers: 1, failures: true, config: `{"health":{"statuses":[429,503]}}`},
		{policy: "consistent_hash", workers: 2, joins: true},
		{policy: "consistent_hash", workers: 1, failures: true},
		{policy: "consistent_hash", workers: 2, joins: true, config: `{"consistent_hash":{"load_factor":0}}`},
		{policy: "cache_aware", workers: 2, joins: true},
		// Of 5,000 bytes less what stands before the prompt the longest known prefix is a share of .81, of 5,000 it would be .998.
		{policy: "cache_aware", workers: 1, failures: true, config: `{"body":{"max_bytes":5000},"cache_aware":{"cache_threshold":0.85}}`},
		{policy: "round_robin", workers: 1, failures: true},
		{policy: "least_loaded", workers: 1, failures: true},
	} {
		t.Run(fmt.Sprintf("%s/workers=%d/failures=%v%s", c.policy, c.workers, c.failures, c.config), func(t *testing.T) {
			fleet := testFleet(12)
			through, err := replay.NewWasmRouter(context.Background(), replay.WasmConfig{Wasm: wasm, Config: []byte(c.config),
				Policy: c.policy, Workers: c.workers, Seed: 7, CacheDir: cacheDir()}, fleet)
			if err != nil {
				t.Fatal(err)
			}
			within, err := newPolicyRouter([]byte(c.config), c.policy, 7, fleet)
			if err != nil {
				t.Fatal(err)
			}
			played, turns := sessions, 6921
			if c.config != "" || c.failures {
				played, turns = sessions[:72], 1700
			}
			d := &lockstep{t: t, a: through, b: within, fleet: fleet, joins: c.joins, failures: c.failures, random: rand.New(rand.NewPCG(1, 2)), reasons: map[string]int{}}
			d.play(played, 112)
			if err := through.Close(); err != nil {
				t.Error(err)
			}
			if d.turns < turns {
				t.Errorf("%d turns were compared, want %d or more", d.turns, turns)
			}
			t.Log(d.turns, "turns", d.reasons)
		})
	}
}

// lockstep plays sessions through two routers at once and compares their decisions.
type lockstep struct {
	t               *testing.T
	a, b            replay.Router
	fleet           []replay.Member
	joins, failures bool
	random          *rand.Rand
	due             dueTurns
	turns           int
	reasons         map[string]int
	blocks          []uint64 // of the turn
}

// dueTurn is a session's next step: to send a turn, or to have its answer.
type dueTurn struct {
	at      time.Duration
	number  int // of equal times, in the order of their making
	session *trace.Session
	turn    int
	running bool
	a, b    replay.Decision
}

type dueTurns []*dueTurn

func (q dueTurns) Len() int { return len(q) }
func (q dueTurns) Less(i, j int) bool {
	return q[i].at < q[j].at || q[i].at == q[j].at && q[i].number < q[j].number
}
func (q dueTurns) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *dueTurns) Push(x any)   { *q = append(*q, x.(*dueTurn)) }
func (q *dueTurns) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func (l *lockstep) play(sessions []trace.Session, open int) {
	next, number := 0, 0
	start := func(at time.Duration) {
		if next < len(sessions) {
			heap.Push(&l.due, &dueTurn{at: at, number: number, session: &sessions[next]})
			next++
			number++
		}
	}
	for i := range open {
		start(time.Duration(i) * 100 * time.Millisecond)
	}
	for len(l.due) > 0 && !l.t.Failed() {
		d := heap.Pop(&l.due).(*dueTurn)
		switch {
		case !d.running:
			l.send(d)
		case l.answer(d):
			start(d.at)
			continue
		}
		number++
		d.number = number
		heap.Push(&l.due, d)
	}
}

// send has both routers decide a turn.
func (l *lockstep) send(d *dueTurn) {
	if l.turns++; l.turns%197 == 0 {
		l.change(d.at)
	}
	t := d.session.Turns[d.turn]
	l.blocks = trace.AppendBlocks(l.blocks[:0], t.Blocks)
	turn := &replay.Turn{Session: d.session.ID, First: d.turn == 0, Prompt: t.Input, BlockTokens: d.session.BlockTokens, Blocks: l.blocks}
	var errA, errB error
	d.a, errA = l.a.Turn(d.at, turn)
	d.b, errB = l.b.Turn(d.at, turn)
	if errA != nil || errB != nil || d.a.Replica != d.b.Replica || d.a.Reason != d.b.Reason {
		l.t.Errorf("turn %d at %v (turn %d of session %s): wasm says %d %s (%v), policy %d %s (%v)", l.turns, d.at, d.turn+1,
			d.session.ID, d.a.Replica, d.a.Reason, errA, d.b.Replica, d.b.Reason, errB)
	}
	l.reasons[d.a.Reason]++
	d.running = true
	d.at += time.Duration(l.random.ExpFloat64() * float64(4*time.Second))
}

// answer ends a turn and reports whether that was the session's last.
func (l *lockstep) answer(d *dueTurn) (over bool) {
	status := 200
	if l.failures && d.a.Replica >= 0 && d.a.Replica%4 == int(d.at/time.Minute)%8 {
		status = []int{0, 503, 429, 400}[l.random.IntN(4)]
	}
	l.both("Done", l.a.Done(d.at, d.a, status), l.b.Done(d.at, d.b, status))
	d.running = false
	if d.turn++; d.turn == len(d.session.Turns) {
		l.both("Finish", l.a.Finish(d.at, d.session.ID), l.b.Finish(d.at, d.session.ID))
		return true
	}
	d.at += min(d.session.Turns[d.turn].Think, 5*time.Second)
	return false
}

// change has a replica drain or go on, leave, come back, or join.
func (l *lockstep) change(now time.Duration) {
	m := &l.fleet[l.random.IntN(len(l.fleet))]
	switch what := l.random.IntN(4); {
	case what == 0 || !l.joins:
		m.Draining = !m.Draining
	case what == 1 && len(l.fleet) < 20:
		l.fleet = append(l.fleet, testMember(len(l.fleet)))
	default:
		m.Gone = !m.Gone
	}
	l.both("Members", l.a.Members(now, l.fleet), l.b.Members(now, l.fleet))
}

func (l *lockstep) both(what string, a, b error) {
	if a != nil || b != nil {
		l.t.Errorf("%s after turn %d: wasm %v, policy %v", what, l.turns, a, b)
	}
}

func testMember(i int) replay.Member {
	return replay.Member{Address: fmt.Sprintf("10.0.0.%d:8000", i+1), Weight: 1 + i%3/2}
}

func testFleet(n int) (fleet []replay.Member) {
	for i := range n {
		fleet = append(fleet, testMember(i))
	}
	return fleet
}

func readTrace(t *testing.T, path string) []trace.Session {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	sessions, err := trace.NewWEKAReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	return sessions
}

// builtWasm is the shipped module.
func builtWasm(t testing.TB) []byte {
	t.Helper()
	wasm, err := os.ReadFile("../../../dist/pinwheel.wasm")
	if errors.Is(err, os.ErrNotExist) {
		t.Fatal("there is no dist/pinwheel.wasm: build it by `make wasm`")
	}
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}
