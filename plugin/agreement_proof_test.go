package plugin

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/etcd"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
	protocol "github.com/pinwheel-proxy/pinwheel/plugin/etcd"
	"github.com/pinwheel-proxy/pinwheel/plugin/json"
)

// agreedProof is a race within one gateway of several, whose others are played by changes in etcd.
type agreedProof struct {
	*proof
	etcd  *etcd.Server
	start *etcd.Server // where each schedule begins
	// meanwhile is what another gateway does right after this one's first transaction about a session, before the answer
	// arrives.
	meanwhile func()
	asked     bool
	trusted   int // schedules that ended with a pin that is trusted
}

func newAgreedProof(t *testing.T, workers int, config string) *agreedProof {
	t.Helper()
	clock := hostsim.NewVirtualClock()
	a := &agreedProof{etcd: etcd.New()}
	call := a.etcd.HTTPCalls(clock)
	a.proof = &proof{clock: clock, gateway: startWith(t, hosttest.Options{Workers: workers, Adjust: func(c *hostsim.Config) {
		c.Clock, c.LogLevel = clock, hostsim.LogWarn
		c.HTTPCall = func(x *hostsim.HTTPCall) bool {
			ok := call(x)
			if strings.Contains(string(x.Body), `"compare"`) && !a.asked && a.meanwhile != nil {
				a.asked = true
				a.meanwhile()
			}
			return ok
		}
	}}, config+`,"agreement":{"kind":"etcd","cluster":"etcd"}`)}
	a.Advance(5 * tick)
	return a
}

// races moves the clock on to the next poll, and runs the scenario under every interleaving.
func (a *agreedProof) races(sc hostsim.Scenario) {
	a.t.Helper()
	a.clock.Advance(tick)
	a.start = a.etcd.Clone()
	a.before = func() {
		a.etcd.Restore(a.start)
		a.asked = false
	}
	a.holds(sc, a.agrees)
	if a.trusted == 0 {
		a.t.Error("no schedule ended with a pin that is trusted: there was nothing to be wrong")
	}
}

// agrees finds fault with a pin that is trusted and not what etcd says, unless the change log still has to tell of it.
func (a *agreedProof) agrees(_ hostsim.Played, _ map[string]string) error {
	r := a.record("default")
	state := a.agreed()
	for _, key := range a.SharedData().Keys() {
		if !strings.HasPrefix(key, keyRoot+"default/s/") {
			continue
		}
		value, _, _ := a.SharedData().Get(key)
		for sh, i := shard(value), 0; i < sh.len(); i++ {
			if sh.doubted(i) || sh.pin(i).LastSeen < state.epoch {
				continue
			}
			a.trusted++
			pinned := r.List[r.Index(sh.pin(i).Replica)].Address
			session := sessionName(sh.hash(i))
			home, _ := a.etcd.Value("/pinwheel/default/s/" + session)
			if home != pinned && a.changed(session) <= state.done {
				return fmt.Errorf("a trusted pin on %s, home %q; the log was read up to %d, its entry is of %d",
					pinned, home, state.done, a.changed(session))
			}
		}
	}
	return nil
}

// changed returns the revision of the session's entry in the change log, 0 for none.
func (a *agreedProof) changed(session string) (revision int64) {
	_, body := a.etcd.Handle("POST", "/v3/kv/range", nil,
		[]byte(`{"key":"`+base64.StdEncoding.EncodeToString([]byte("/pinwheel/default/f/"+session))+`"}`))
	json.Get(string(body), "kvs").ForEach(func(_, kv json.Result) bool {
		_, _ = fmt.Sscan(kv.Get("mod_revision").Str, &revision)
		return false
	})
	return revision
}

// What other gateways' transactions say.
var agreedKeys = protocol.Keys{Root: "/pinwheel/default/"}

// endsElsewhere is a release of the only session at another gateway.
func (a *agreedProof) endsElsewhere() {
	keys := a.etcd.Keys("/pinwheel/default/s/")
	if len(keys) != 1 {
		return
	}
	home, _ := a.etcd.Value(keys[0])
	a.txn(agreedKeys.Release(keys[0][len(keys[0])-32:], home, protocol.Leases{}))
}

// movesElsewhere is the loss of its replica there.
func (a *agreedProof) movesElsewhere() {
	keys := a.etcd.Keys("/pinwheel/default/s/")
	if len(keys) != 1 {
		return
	}
	home, _ := a.etcd.Value(keys[0])
	to := map[bool]string{true: "10.0.0.1:8000", false: "10.0.0.2:8000"}[home != "10.0.0.1:8000"]
	a.txn(agreedKeys.Move(keys[0][len(keys[0])-32:], home, to, protocol.Leases{}))
}

func (a *agreedProof) txn(body string) {
	if status, reply := a.etcd.Handle("POST", "/v3/kv/txn", nil, []byte(body)); status != 200 || !json.Get(string(reply), "succeeded").Bool() {
		a.t.Errorf("%d %s", status, reply)
	}
}

func TestProofAnswerAndPoll(t *testing.T) {
	for name, other := range map[string]func(*agreedProof){"release": (*agreedProof).endsElsewhere, "move": (*agreedProof).movesElsewhere} {
		t.Run(name, func(t *testing.T) {
			a := newAgreedProof(t, 1, threeReplicas+smallTable)
			a.meanwhile = func() { other(a) }
			sc := workers(a.turns("s"))
			sc.Main = ticks
			a.races(sc)
		})
	}
}

// A turn of a session with a pin, whose lease is to be renewed.
func TestProofRenewalAndPoll(t *testing.T) {
	a := newAgreedProof(t, 1, threeReplicas+smallTable)
	a.turn("s")
	a.clock.Advance(20 * time.Second)
	a.meanwhile = a.movesElsewhere
	turn := a.turns("s")
	sc := workers(func(w *hostsim.Worker) { turn(w); w.RunDue() }) // it does not wait for the answer
	sc.Main = ticks
	a.races(sc)
}

func TestProofAnswerAndRelease(t *testing.T) {
	a := newAgreedProof(t, 2, threeReplicas+smallTable)
	a.races(workers(a.turns("s"), a.releases("s")))
}
