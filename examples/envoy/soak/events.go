package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// event is something that is done to the gateway while the load goes on. Each begins and ends with all replicas well.
type event struct {
	name string
	do   func(context.Context, *run, *rand.Rand) error
}

// The events in turn. Each crash stands between two checks of the counters, so that what a dead VM did not report is bounded.
var cycle = []event{
	{"kill", kill},
	{"update", updateSettings},
	{"drain", drain},
	{"crash", crash},
	{"membership", changeMembers},
	{"kill", restart},
	{"update", updateSettings},
	{"drain", drain},
	{"half_way_crash", crashHalfWay},
}

// play lets events happen, evenly over the requests, until those are answered or the time for the load is over. An event that
// ctx cuts short leaves the replicas as they are.
func (r *run) play(ctx context.Context) error {
	rng := random(^r.settings.Seed)
	for n := range r.settings.Events {
		at := r.settings.Requests / uint64(r.settings.Events+1) * uint64(n+1)
		if err := r.await(ctx, at, r.began.Add(r.settings.Limit)); err != nil {
			return err
		}
		e := cycle[n%len(cycle)]
		if strings.HasSuffix(e.name, "crash") && !r.settings.Crashes {
			continue
		}
		r.note.Store(&e.name)
		if err := e.do(ctx, r, rng); err != nil {
			return fmt.Errorf("event %d, %s: %w", n, e.name, err)
		}
		r.events[e.name]++
	}
	return r.await(ctx, r.settings.Requests, r.began.Add(r.settings.Limit))
}

// errLimit says that the time for the load is over.
var errLimit = errors.New("soak: the time limit is reached")

// reached waits until so many requests are answered.
func (r *run) reached(ctx context.Context, requests uint64) error {
	return eventually(ctx, "the load to go on", func() (bool, error) { return r.answered.Load() >= requests, nil })
}

// await waits until so many requests are answered, for as long as that takes, or returns errLimit at that end.
func (r *run) await(ctx context.Context, requests uint64, end time.Time) error {
	for r.answered.Load() < requests {
		if time.Now().After(end) {
			return errLimit
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return nil
}

// pass waits until each client has had two more requests answered: whatever a worker had received before the call it has
// then seen to.
func (r *run) pass(ctx context.Context) error {
	target := make([]uint64, len(r.clients))
	for i, c := range r.clients {
		target[i] = c.steps.Load() + 2
	}
	for i, c := range r.clients {
		if err := eventually(ctx, "all clients to go on", func() (bool, error) { return c.steps.Load() >= target[i], nil }); err != nil {
			return err
		}
	}
	return nil
}

// kill lets a replica be dead until the plugin leaves it alone, and waits until it serves again.
func kill(ctx context.Context, r *run, rng *rand.Rand) error {
	i := rng.IntN(len(r.gateway.replicas))
	return r.outage(ctx, i, func() error {
		return eventually(ctx, "a dead replica to cool down", func() (bool, error) {
			s, err := r.gateway.member(ctx, i)
			return s.State == "cooling", err
		})
	})
}

// restart kills a replica that is back at once.
func restart(ctx context.Context, r *run, rng *rand.Rand) error {
	return r.outage(ctx, rng.IntN(len(r.gateway.replicas)), func() error { return nil })
}

func (r *run) outage(ctx context.Context, i int, meanwhile func() error) error {
	r.ground.epochs[i].Add(1)
	r.gateway.replicas[i].kill()
	err := meanwhile()
	if err2 := r.gateway.replicas[i].reopen(); err == nil {
		err = err2
	}
	if err != nil {
		return err
	}
	// Its failures are on record once all is answered that it was asked while it was dead.
	if err := r.pass(ctx); err != nil {
		return err
	}
	err = eventually(ctx, "a replica that is back to be well", func() (bool, error) {
		s, err := r.gateway.member(ctx, i)
		return s.State == "active" && s.Health.Failures == 0 && s.Health.CooldownMS == 0, err
	})
	if err == nil {
		err = r.pass(ctx)
	}
	r.ground.epochs[i].Add(1)
	return err
}

// choices are the configurations that updates go through. Under each of them sessions stay where they are.
var choices = []map[string]any{
	{"policy": "consistent_hash"},
	{"target": map[string]any{"spares": 1}},
	{"policy": "consistent_hash", "consistent_hash": map[string]any{"load_factor": 1}},
	{"health": map[string]any{"failures": 5, "cooldown": "500ms", "max_cooldown": "2s"}, "decision_log": map[string]any{"enabled": true, "sample": 0.0001}},
	{},
}

func updateSettings(ctx context.Context, r *run, _ *rand.Rand) error {
	r.gateway.config = choices[r.gateway.serial%len(choices)]
	return r.update(ctx)
}

// update brings the gateway's configuration into force, for the clients' connections too.
func (r *run) update(ctx context.Context) error {
	r.updating.Store(true)
	defer r.updating.Store(false)
	err := r.gateway.update(ctx)
	r.gen.Add(1)
	if err != nil {
		return err
	}
	return r.pass(ctx)
}

// changeMembers takes a replica out of the pool, and into it again.
func changeMembers(ctx context.Context, r *run, rng *rand.Rand) error {
	i := rng.IntN(len(r.gateway.replicas))
	var members []string
	for j, m := range r.gateway.replicas {
		if j != i {
			members = append(members, m.addr)
		}
	}
	r.ground.epochs[i].Add(1)
	defer r.ground.epochs[i].Add(1)
	before := r.gateway.config
	defer func() { r.gateway.config = before }()
	r.gateway.config = map[string]any{"replicas": members}
	if err := r.update(ctx); err != nil {
		return err
	}
	r.ground.closing[i].Add(1)
	err := r.reached(ctx, r.answered.Load()+uint64(r.settings.Sessions))
	r.ground.closing[i].Add(1)
	if err != nil {
		return err
	}
	r.gateway.config = before
	return r.update(ctx)
}

// drain has an operator drain a replica and take it back.
func drain(ctx context.Context, r *run, rng *rand.Rand) error {
	i := rng.IntN(len(r.gateway.replicas))
	query := "?replica=" + r.gateway.replicas[i].addr
	if _, err := r.gateway.order(ctx, http.MethodPost, "/drain"+query); err != nil {
		return err
	}
	r.ground.closing[i].Add(1)
	err := r.reached(ctx, r.answered.Load()+uint64(r.settings.Sessions))
	r.ground.closing[i].Add(1)
	if err != nil {
		return err
	}
	_, err = r.gateway.order(ctx, http.MethodPost, "/undrain"+query)
	return err
}

// crash ends the VM of one worker at the beginning of a request.
func crash(ctx context.Context, r *run, _ *rand.Rand) error {
	return r.crashed(ctx, func(conn net.Conn) error {
		_, err := io.WriteString(conn, "GET /v1/models HTTP/1.1\r\nhost: llm\r\n"+headers(trapHeaders)+"\r\n")
		return err
	})
}

// crashHalfWay ends it in the middle of a release: the pin is gone, the replica still counts it.
func crashHalfWay(ctx context.Context, r *run, _ *rand.Rand) error {
	id := fmt.Sprintf("ghost-%d", r.ghosts)
	return r.crashed(ctx, func(conn net.Conn) error {
		if _, err := io.WriteString(conn, "GET /v1/models HTTP/1.1\r\nhost: llm\r\nx-session-id: "+id+"\r\n\r\n"); err != nil {
			return err
		}
		res, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			return fmt.Errorf("soak: the turn before a crash: %s, %v", res.Status, err)
		}
		r.own.reason([]byte(res.Header.Get("x-pinwheel-reason")))
		r.own.served[number([]byte(res.Header.Get(servedHeader)))]++
		r.decided.Add(1)
		r.ghosts++
		_, err = io.WriteString(conn, "POST /finish_session?session_id="+id+" HTTP/1.1\r\nhost: llm\r\n"+headers(halfWayHeaders)+"content-length: 0\r\n\r\n")
		return err
	})
}

func headers(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "x-soak-%d: 1\r\n", i)
	}
	return b.String()
}

// crashed checks the counters, lets the load go on, has f make a worker crash, and checks the counters again when that worker
// has a plugin.
func (r *run) crashed(ctx context.Context, f func(net.Conn) error) error {
	if err := r.checkpoint(ctx); err != nil {
		return err
	}
	decided := r.decided.Load()
	if err := r.reached(ctx, r.answered.Load()+uint64(10*r.settings.Connections)); err != nil {
		return err
	}
	before, err := r.gateway.reloads(ctx)
	if err != nil {
		return err
	}
	r.crash.Add(1)
	err = r.trap(ctx, f, before)
	r.crash.Add(1)
	r.crashes++
	// Decided by the dead VM since the check, at most all that was answered since; each client may be about to count one more.
	window := r.decided.Load() - decided + uint64(r.settings.Connections)
	r.unreported, r.bound = r.unreported+window, r.bound+window
	if err != nil {
		return err
	}
	return r.checkpoint(ctx)
}

func (r *run) trap(ctx context.Context, f func(net.Conn) error, before uint64) error {
	conn, err := net.Dial("tcp", r.gateway.addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(patience))
	if err := f(conn); err != nil {
		return err
	}
	_, _ = conn.Read(make([]byte, 1)) // whatever comes: an answer, or the end
	err = eventually(ctx, "a fresh VM in place of the dead one", func() (bool, error) {
		r.gateway.probe(ctx) // the worker's next request makes it
		n, err := r.gateway.reloads(ctx)
		return n > before, err
	})
	if err != nil {
		return err
	}
	return r.gateway.serves(ctx)
}

// checkpoint stops the load and waits until the plugin has reported all that it decided, but for what VMs took with them that
// died since the last one, and until nothing is in flight. More is missing then only if it lost count.
func (r *run) checkpoint(ctx context.Context) error {
	r.gate.Lock()
	defer r.gate.Unlock()
	var t tally
	for _, c := range r.clients {
		t.add(&c.tally)
	}
	err := eventually(ctx, "the plugin's counters to show all requests", func() (bool, error) {
		counters, err := r.gateway.counters(ctx)
		r.missing = int64(r.decided.Load()+r.gateway.probes.Load()) - int64(sum(decisions(counters)))
		if r.missing < -int64(t.Cut+r.gateway.failed.Load()) {
			return false, fmt.Errorf("soak: the plugin reports %d requests more than there were", -r.missing)
		}
		return r.missing <= int64(r.unreported), err
	})
	if err != nil {
		return fmt.Errorf("%w: %d are missing, %d may be", err, r.missing, r.unreported)
	}
	if err := r.rest(ctx); err != nil {
		return err
	}
	// What is missing now is gone for good; nothing more may be.
	r.unreported = uint64(max(r.missing, 0))
	var list []envoytest.Standing
	err = eventually(ctx, "all requests to end", func() (bool, error) {
		list, err = r.gateway.status(ctx)
		for _, s := range list {
			if s.Inflight > 0 {
				return false, err
			}
		}
		return err == nil, err
	})
	if err != nil {
		return fmt.Errorf("%w: %+v", err, list)
	}
	r.checkpoints++
	return nil
}

// rest waits until the plugin's counters stand still, which brings r.missing to what it will be.
func (r *run) rest(ctx context.Context) error {
	for quiet := 0; quiet < 60; quiet++ {
		counters, err := r.gateway.counters(ctx)
		if err != nil {
			return err
		}
		missing := int64(r.decided.Load()+r.gateway.probes.Load()) - int64(sum(decisions(counters)))
		if missing != r.missing {
			r.missing, quiet = missing, 0
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
		}
	}
	return nil
}
