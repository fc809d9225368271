package plugin

import (
	"fmt"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// What a turn costs inside the plugin, shared data being a map in the same process:
// the gateway's host calls come on top. The names say what the ratios of build/bench
// are taken between. Sticky turns are those of 32 sessions, so that what grows with the
// number of open ones is the plugin's work, if it is anything; cold ones are those of all
// sessions in turn, whose pins have to come from the machine's memory first. cpu-ns is the
// process's CPU time, which other processes lengthen less than the time.
func BenchmarkTurn(b *testing.B) {
	for _, sessions := range []int{1000, 30_000, 1_000_000} {
		benchTurns(b, "sticky", "sticky_least_loaded", 64, sessions)
		benchTurns(b, "cold", "sticky_least_loaded", 64, sessions)
	}
	for _, replicas := range []int{4, 1024} {
		benchTurns(b, "sticky", "sticky_least_loaded", replicas, 30_000)
	}
	for _, replicas := range []int{4, 64, 1024} {
		benchTurns(b, "placement", "sticky_least_loaded", replicas, 30_000)
	}
	for _, name := range policyNames[1:] {
		benchTurns(b, "sticky", name, 64, 1000)
	}
}

func benchTurns(b *testing.B, turn, name string, replicas, sessions int) {
	b.Run(fmt.Sprintf("policy=%s/turn=%s/replicas=%d/sessions=%d", name, turn, replicas, sessions), func(b *testing.B) {
		f := fleetOf(name, replicas, sessions)
		b.ReportAllocs()
		if turn == "placement" {
			b.ReportMetric(f.place(b)/float64(b.N), "cpu-ns/op")
			return
		}
		ids := f.ids
		if turn == "sticky" {
			ids = ids[:32]
		}
		before := cpuTime(b)
		for i := 0; b.Loop(); i++ {
			if r := f.turn(ids[i%len(ids)]); r != policy.Pinned && f.pool.chooser.Pins() {
				b.Fatal(r)
			}
		}
		b.ReportMetric((cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
	})
}

// benchFleet is a pool with its sessions, whose turns are measured.
type benchFleet struct {
	data *benchData
	pool *pool
	ids  [][]byte
	id   []byte // scratch
}

// fleets are kept for the next round: to place a million sessions takes longer than
// to measure.
var fleets = map[string]*benchFleet{}

func fleetOf(name string, replicas, sessions int) *benchFleet {
	key := fmt.Sprint(name, replicas, sessions)
	if f := fleets[key]; f != nil {
		return f
	}
	f := newBenchFleet(name, replicas, sessions)
	fleets[key] = f
	return f
}

func newBenchFleet(name string, replicas, sessions int) *benchFleet {
	f := &benchFleet{data: newBenchData(), ids: make([][]byte, sessions)}
	c := benchConfig(sessions + benchBatch)
	f.pool = newPool(f.data, PoolConfig{Name: "p", Policy: name, Members: addresses(replicas)}, c, 1)
	f.pool.store.adopt(0, 0)
	for i := range f.ids {
		f.ids[i] = fmt.Appendf(nil, "session-%032d", i)
		f.turn(f.ids[i])
	}
	return f
}

func benchConfig(sessions int) *Config {
	c := defaultConfig()
	c.Session.MaxSessions = sessions
	return &c
}

// turn is what the plugin does for one, but for what it asks the gateway.
func (f *benchFleet) turn(id []byte) policy.Reason {
	f.data.Forget()
	key := policy.NewKey(policy.Secret{}, id)
	d := f.pool.decide(key, true, 0, nil, 1000)
	f.pool.targetOf(d, key, 1000)
	return d.Reason
}

// benchBatch is the number of sessions that are placed before they are ended, which is
// not measured.
const benchBatch = 1024

// place measures first turns, and returns their CPU time in ns.
func (f *benchFleet) place(b *testing.B) (cpu float64) {
	placed := 0
	end := func() {
		for ; placed > 0; placed-- {
			f.data.Forget()
			if !f.pool.store.finish(policy.NewKey(policy.Secret{}, f.newcomer(placed-1)).Hash, 1000) {
				b.Fatal("a new session was not kept")
			}
		}
	}
	before := cpuTime(b)
	for b.Loop() {
		if placed == benchBatch {
			b.StopTimer()
			cpu += cpuTime(b) - before
			end()
			before = cpuTime(b)
			b.StartTimer()
		}
		if r := f.turn(f.newcomer(placed)); r != policy.Placed {
			b.Fatal(r)
		}
		placed++
	}
	cpu += cpuTime(b) - before
	end()
	return cpu
}

// newcomer is the id of a session that is not among the fleet's.
func (f *benchFleet) newcomer(i int) []byte {
	f.id = append(f.id[:0], "newcomer-00000000000000000000000000000000"...)
	for at := len(f.id) - 1; i > 0; i, at = i/10, at-1 {
		f.id[at] = byte('0' + i%10)
	}
	return f.id
}

// benchData is shared data that gives values as the gateway's binding does: copied into
// memory that the next callback uses again.
type benchData struct {
	values map[string]*benchValue
	arena  []byte
	last   uint32
}

type benchValue struct {
	bytes []byte
	cas   uint32
}

func newBenchData() *benchData {
	return &benchData{values: map[string]*benchValue{}, arena: make([]byte, 0, 1<<20)}
}

func (d *benchData) Get(key string) ([]byte, uint32, error) {
	v := d.values[key]
	if v == nil {
		return nil, abi.CreateCAS, nil
	}
	start := len(d.arena)
	d.arena = append(d.arena, v.bytes...)
	return d.arena[start:], v.cas, nil
}

func (d *benchData) Set(key string, value []byte, cas uint32) error {
	v := d.values[key]
	if v == nil {
		v = &benchValue{}
		d.values[string(append([]byte(nil), key...))] = v
	} else if cas != 0 && cas != v.cas {
		return types.ErrorStatusCasMismatch
	}
	d.last++
	v.bytes, v.cas = append(v.bytes[:0], value...), d.last
	return nil
}

func (d *benchData) Forget() { d.arena = d.arena[:0] }

// BenchmarkTick is a second of the simulated gateway without requests: a tick of the
// shipped module in each of two workers and on the main thread, one of which leads.
func BenchmarkTick(b *testing.B) {
	for _, n := range []int{4, 64, 1024} {
		b.Run(fmt.Sprintf("replicas=%d", n), func(b *testing.B) {
			g := startGateway(b, 2, replicas(n))
			for i := range 4 {
				g.turn(fmt.Sprint("s", i))
			}
			g.Advance(5 * tick)
			for b.Loop() {
				g.Advance(tick)
			}
		})
	}
}

// BenchmarkModuleTurn is a whole stream through the shipped module in the simulated gateway, of one session or of a new one
// each time. wazero runs it slower than a gateway's engine does.
func BenchmarkModuleTurn(b *testing.B) {
	for _, turn := range []string{"sticky", "placement"} {
		for _, n := range []int{4, 64, 1024} {
			b.Run(fmt.Sprintf("turn=%s/replicas=%d", turn, n), func(b *testing.B) {
				g := startGateway(b, 1, replicas(n)+`,"session":{"max_sessions":1000000}`)
				sent := 0
				for b.Loop() {
					id := "s"
					if turn == "placement" {
						id = fmt.Sprint("s", sent)
					}
					s := g.Worker(0).NewStream()
					if _, err := s.RequestHeaders(turnHeaders(id), true); err != nil {
						b.Fatal(err)
					}
					if _, err := s.ResponseHeaders(okHeaders, true); err != nil {
						b.Fatal(err)
					}
					g.end(s, hostsim.EndNormal)
					sent++
				}
				g.Advance(2 * tick)
				if placed := g.decisions(policy.Placed); turn == "placement" && placed != int64(sent) || turn == "sticky" && placed != 1 {
					b.Errorf("%d of %d turns were placed", placed, sent)
				}
			})
		}
	}
}

// A sticky turn and a placement leave no garbage, with few replicas and many.
func TestTurnsAllocateNothing(t *testing.T) {
	for _, replicas := range []int{4, 64, 1024} {
		f := newBenchFleet("sticky_least_loaded", replicas, 500)
		next := 0
		for what, turn := range map[string]func(){
			"sticky": func() { f.turn(f.ids[1]) },
			"placed": func() {
				if r := f.turn(f.newcomer(next % benchBatch)); r != policy.Placed {
					t.Fatal(r)
				}
				f.pool.store.finish(policy.NewKey(policy.Secret{}, f.newcomer(next%benchBatch)).Hash, 1000)
				next++
			},
		} {
			for range 2 * benchBatch { // shards grow to what they hold at most
				turn()
			}
			if n := testing.AllocsPerRun(1000, turn); n != 0 {
				t.Errorf("%s with %d replicas: %v allocations", what, replicas, n)
			}
		}
	}
}
