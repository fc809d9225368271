package main

import (
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// policyRouter decides turns by a policy.Pool in this process, as the plugin would with all its state at hand: no second
// worker, no ticks between what happens and what is known of it. Not safe for concurrent use.
type policyRouter struct {
	pool     *policy.Pool
	rule     policy.HealthRule
	failures failureStatuses
	maxBytes int  // of a body that is read
	prompts  bool // the policy asks for them

	ids     []uint32       // by index, 0 where it has gone
	at      map[uint32]int // indexes by id
	running map[*policyTurn]bool
	ticked  int64 // when, in ms
	swept   int64
	prompt  policy.Prompt
	text    []byte
}

// policyTurn is a turn under way: its session's key, its replica's id, and when it was sent there.
type policyTurn struct {
	key     policy.Key
	id      uint32
	began   int64
	touched int64
}

// newPolicyRouter makes a router of a plugin's configuration.
func newPolicyRouter(config []byte, name string, seed uint64, fleet []replay.Member) (*policyRouter, error) {
	s, err := readPolicySettings(config, name)
	if err != nil {
		return nil, err
	}
	r := &policyRouter{failures: s.Health.Statuses, maxBytes: s.Body.MaxBytes, running: map[*policyTurn]bool{}}
	if r.pool, err = s.pool(seed); err != nil {
		return nil, err
	}
	if r.rule, err = s.rule(); err != nil {
		return nil, err
	}
	_, r.prompts = r.pool.Policy.(policy.CacheAware)
	return r, r.Members(0, fleet)
}

// pluginTime is what the plugin's clock shows: it begins at one second, in ms.
func pluginTime(now time.Duration) int64 { return (now + time.Second).Milliseconds() }

func (r *policyRouter) Turn(now time.Duration, t *replay.Turn) (replay.Decision, error) {
	ms := r.tick(now)
	key := policy.NewKey(policy.Secret{}, []byte(t.Session))
	d := r.pool.Turn(key, r.promptOf(t, key, ms), ms)
	if d.Replica == 0 {
		return replay.Decision{Replica: -1, Reason: d.Reason.String()}, nil
	}
	turn := &policyTurn{key: key, id: d.Replica, began: ms, touched: ms}
	r.pool.Begin(d.Replica)
	if r.pool.Policy.Pins() {
		r.running[turn] = true
	}
	return replay.Decision{Replica: r.at[d.Replica], Reason: d.Reason.String(), Ticket: turn}, nil
}

// promptOf reads the prompt as far as the plugin would. A session whose pin holds needs none.
func (r *policyRouter) promptOf(t *replay.Turn, key policy.Key, ms int64) *policy.Prompt {
	if !r.prompts || r.pool.Keeps(key, ms) {
		return nil
	}
	r.prompt.Reset(0)
	text := replay.NewPromptText(t)
	for left, last := r.maxBytes-len(replay.BodyBeforePrompt), false; left > 0 && !last; left -= len(r.text) {
		r.text, last = text.Next(r.text[:0])
		r.prompt.Write(r.text[:min(left, len(r.text))])
	}
	if r.prompt.Len() == 0 {
		return nil
	}
	return &r.prompt
}

func (r *policyRouter) Done(now time.Duration, d replay.Decision, status int) error {
	ms := r.tick(now)
	t, ok := d.Ticket.(*policyTurn)
	if !ok {
		return nil // nobody was named
	}
	broken := status == 0
	if broken {
		status = 503 // a gateway's answer to a connection that broke
	}
	switch {
	case r.failures.has(status):
		// By address, as a gateway tells it: the replica there may be another one by now.
		r.pool.Fail(r.ids[d.Replica], t.began, ms, r.rule)
	case !broken:
		r.pool.Succeed(t.id, t.began)
	}
	r.pool.End(t.id)
	delete(r.running, t)
	return nil
}

func (r *policyRouter) Finish(now time.Duration, session string) error {
	r.tick(now)
	r.pool.Finish(policy.NewKey(policy.Secret{}, []byte(session)))
	return nil
}

func (r *policyRouter) Members(now time.Duration, fleet []replay.Member) error {
	ms := r.tick(now)
	var members []policy.Member
	for _, m := range fleet {
		if !m.Gone {
			members = append(members, policy.Member{Address: m.Address, Weight: uint32(max(m.Weight, 1))})
		}
	}
	r.pool.Apply(members, ms, 0)
	indexes := make(map[string]int, len(fleet))
	for i, m := range fleet {
		if !m.Gone {
			indexes[m.Address] = i
		}
	}
	r.ids, r.at = make([]uint32, len(fleet)), make(map[uint32]int, len(fleet))
	for i := range r.pool.List {
		c := &r.pool.List[i]
		if at, ok := indexes[c.Address]; ok && c.State != policy.Removed {
			r.ids[at], r.at[c.ID] = c.ID, at
		}
	}
	for i, m := range fleet {
		if !m.Gone {
			r.pool.Drain(r.ids[i], m.Draining)
		}
	}
	return nil
}

// The plugin's periods, in ms: between two ticks, and for all sessions to be looked at once.
const (
	tickPeriod  = 1000
	sweepPeriod = 30_000
)

// tick does what the plugin does once a second: it keeps the pins of running turns, and ends sessions that were idle. It
// returns the time in milliseconds.
func (r *policyRouter) tick(now time.Duration) int64 {
	ms := pluginTime(now)
	if ms-r.ticked < tickPeriod {
		return ms
	}
	r.ticked = ms
	for t := range r.running {
		if ms-t.touched > r.pool.Timeout/16 {
			t.touched = ms
			r.pool.Touch(t.key, ms)
		}
	}
	if ms-r.swept >= sweepPeriod {
		r.swept = ms
		r.pool.Sweep(ms)
	}
	return ms
}

func (r *policyRouter) Close() error { return nil }
