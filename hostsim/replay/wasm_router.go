package replay

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// ErrPlugin is wrapped by errors about a plugin that does not do what a replay asks of it, such as naming a replica that the
// fleet does not have. A crash wraps hostsim.ErrTrap too.
var ErrPlugin = errors.New("replay: the plugin")

// WasmConfig says what a WasmRouter runs. Only Wasm is required.
type WasmConfig struct {
	// Wasm is the module.
	Wasm []byte
	// Config is the plugin's configuration, a JSON object, or nothing. Its replicas, pools and discovery do not count, and
	// neither does how sessions and choices are named: a replay has ways of its own.
	Config []byte
	// Policy takes the place of the configuration's, unless empty.
	Policy string
	// Workers is the number of worker threads, 1 to 256. Zero means 2.
	Workers int
	// Seed decides which worker has which turn, and feeds the plugin's random numbers.
	Seed uint64
	// CacheDir is where compiled code is kept between runs, see hostsim.Config. Empty: in memory only.
	CacheDir string
	// Etcd is what answers all call-outs of the plugin: the same one for all gateways of a run. Without it there is no cluster that
	// the plugin could call, and a turn is decided at once or not at all.
	Etcd *Etcd
	// Log, if not nil, is told what the plugin logs at LogWarn or above.
	Log func(hostsim.LogEntry)
}

// warmUp is how long a gateway that asks etcd has been there when a replay begins: it has a token, and has polled.
const warmUp = 5 * time.Second

// DefaultWorkers is the number of worker threads where none is given.
const DefaultWorkers = 2

// WasmRouter is a gateway with the plugin in it: a hostsim.Host whose clock is the replay's. A turn's stream stays open
// until Done. Not safe for concurrent use.
type WasmRouter struct {
	config  WasmConfig
	host    *hostsim.Host
	clock   time.Duration
	deal    uint64
	members []Member       // as configured
	indexes map[string]int // of the fleet, by address
	drained map[string]bool

	reason  string // of the last decision, as logged
	refused string // the last critical line

	// What the plugin has paused: turns, and requests to itself. calls counts its call-outs, and reasons has what workers have
	// logged outside of Turn while turns waited.
	held     []heldTurn
	asked    []heldAsking
	calls    int
	deciding bool
	reasons  map[int][]string

	headers hostsim.Headers
	body    []byte
}

// NewWasmRouter starts the plugin for the fleet. Errors: those of hostsim.New, ErrRouterConfig, ErrPlugin. A refusal has the
// plugin's own reason in it.
func NewWasmRouter(ctx context.Context, c WasmConfig, fleet []Member) (*WasmRouter, error) {
	if c.Workers == 0 {
		c.Workers = DefaultWorkers
	}
	r := &WasmRouter{config: c, deal: splitMix(c.Seed), drained: map[string]bool{}, reasons: map[int][]string{}}
	r.members = remaining(fleet)
	config, err := pluginConfig(c.Config, c.Policy, r.members)
	if err != nil {
		return nil, err
	}
	clock := hostsim.NewVirtualClock()
	hc := hostsim.Config{Wasm: c.Wasm, PluginConfig: config, Workers: c.Workers, Seed: c.Seed, Clock: clock,
		AllowOnHeadersStopIteration: true, BufferLimit: 8 << 20, LogLevel: hostsim.LogInfo, LogLimit: 1, Log: r.log, CacheDir: c.CacheDir}
	if c.Etcd != nil {
		hc.HTTPCall = func(call *hostsim.HTTPCall) bool {
			r.calls++
			return c.Etcd.call(clock.Now().Sub(hostsim.VirtualEpoch)-warmUp, call)
		}
	}
	r.host, err = hostsim.New(ctx, hc)
	if err != nil {
		return nil, r.explain(err)
	}
	if c.Etcd != nil {
		r.host.Advance(warmUp)
	}
	if err := r.Members(0, fleet); err != nil {
		return nil, errors.Join(err, r.host.Close())
	}
	return r, nil
}

// remaining are the members that have not gone, without their drains.
func remaining(fleet []Member) []Member {
	var members []Member
	for _, m := range fleet {
		if !m.Gone {
			members = append(members, Member{Address: m.Address, Weight: max(m.Weight, 1)})
		}
	}
	return members
}

// log looks for decisions in what the plugin logs.
func (r *WasmRouter) log(e hostsim.LogEntry) {
	const field = `"reason":"`
	if e.Level == hostsim.LogInfo {
		if _, rest, ok := strings.Cut(e.Message, field); ok {
			reason, _, _ := strings.Cut(rest, `"`)
			if r.deciding {
				r.reason = reason
			} else if len(r.held) > 0 {
				r.reasons[e.Worker] = append(r.reasons[e.Worker], reason)
			}
		}
		return
	}
	if e.Level == hostsim.LogCritical {
		r.refused = e.Message
	}
	if r.config.Log != nil && e.Level >= hostsim.LogWarn {
		r.config.Log(e)
	}
}

// explain adds the plugin's own words to a refusal.
func (r *WasmRouter) explain(err error) error {
	if errors.Is(err, hostsim.ErrRefused) && r.refused != "" {
		return fmt.Errorf("%w: %s", err, r.refused)
	}
	return err
}

// Advance moves the plugin's clock to now, with all ticks that fall due on the way. All other methods do that first: who
// wants to know what decisions cost calls it before.
func (r *WasmRouter) Advance(now time.Duration) {
	if now > r.clock || r.config.Etcd != nil { // whose answers may be due at this moment
		r.host.Advance(now - r.clock)
		r.clock = max(r.clock, now)
	}
}

// stream begins a stream on the next worker.
func (r *WasmRouter) stream() *hostsim.Stream {
	r.deal += 0x9e3779b97f4a7c15
	return r.host.Worker(int(splitMix(r.deal) % uint64(r.host.Workers()))).NewStream()
}

// request returns the headers of a request, valid until the next call.
func (r *WasmRouter) request(path, session string) hostsim.Headers {
	r.headers = append(r.headers[:0], [2]string{":method", "POST"}, [2]string{":scheme", "http"}, [2]string{":authority", "replay"},
		[2]string{":path", path}, [2]string{"content-type", "application/json"})
	if session != "" {
		r.headers = append(r.headers, [2]string{sessionHeader, session})
	}
	return r.headers
}

// Turn sends the headers of a turn, and as much of a body as the plugin waits for; the turn stays open where that one waits for
// an answer of its own, and the body meanwhile with the client. Errors: ErrPlugin, hostsim.ErrTrap.
func (r *WasmRouter) Turn(now time.Duration, t *Turn) (Decision, error) {
	r.Advance(now)
	r.reason, r.deciding = "", true
	defer func() { r.deciding = false }()
	calls := r.calls
	s := r.stream()
	step, err := s.RequestHeaders(r.request("/v1/completions", t.Session), false)
	if err == nil && step.Flow == hostsim.Wait && r.calls == calls {
		step, err = r.sendBody(s, t)
	}
	d := Decision{Replica: -1, Ticket: s}
	if err == nil && step.Flow == hostsim.Wait && r.calls > calls {
		r.held = append(r.held, heldTurn{s, t.Session, now})
		d.Open = true
		return d, nil
	}
	if err == nil {
		d.Replica, err = r.replica(s, step)
	}
	if err != nil {
		return Decision{}, errors.Join(fmt.Errorf("session %s at %v: %w", t.Session, now, err), s.End(hostsim.EndClientGone))
	}
	d.Reason = r.reason
	return d, nil
}

func (r *WasmRouter) sendBody(s *hostsim.Stream, t *Turn) (step hostsim.Step, err error) {
	text := NewPromptText(t)
	r.body = append(r.body[:0], BodyBeforePrompt...)
	for last := false; !last; r.body = r.body[:0] {
		if r.body, last = text.Next(r.body); last {
			r.body = append(r.body, `"}`...)
		}
		if step, err = s.RequestBody(r.body, last); err != nil || step.Flow != hostsim.Wait {
			break
		}
	}
	return step, err
}

// replica finds the fleet's member that the request was sent to, the first of those that the plugin names.
func (r *WasmRouter) replica(s *hostsim.Stream, step hostsim.Step) (int, error) {
	if step.Flow == hostsim.Reply {
		return -1, fmt.Errorf("%w answered it itself: %s", ErrPlugin, replyOf(s))
	}
	if step.Flow != hostsim.Forward {
		return -1, fmt.Errorf("%w did not let it go on: %v", ErrPlugin, step.Flow)
	}
	target, ok := s.Headers(hostsim.MapRequestHeaders).Get(targetHeader)
	if !ok {
		return -1, nil
	}
	address, _, _ := strings.Cut(target, ",")
	i, ok := r.indexes[address]
	if !ok {
		return -1, fmt.Errorf("%w sent it to %q, which the fleet does not have", ErrPlugin, address)
	}
	return i, nil
}

func replyOf(s *hostsim.Stream) string {
	l := s.LocalReply()
	if l == nil {
		return "nothing"
	}
	return strconv.Itoa(int(l.Status)) + " " + strings.TrimSpace(string(l.Body))
}

// Done sends the response's headers and ends the stream. Errors: hostsim.ErrTrap.
func (r *WasmRouter) Done(now time.Duration, d Decision, status int) error {
	s, ok := d.Ticket.(*hostsim.Stream)
	if !ok {
		return fmt.Errorf("%w: a ticket that is none of this router's", ErrRouterConfig)
	}
	r.Advance(now)
	if status != 200 {
		status = r.failed(s, d, status)
	}
	r.headers = append(r.headers[:0], [2]string{":status", strconv.Itoa(status)})
	_, err := s.ResponseHeaders(r.headers, true)
	return errors.Join(err, s.End(hostsim.EndNormal))
}

// failed sets what the plugin asks about an answer that is not plain, and returns the status: a connection that breaks is
// answered 503 by the gateway. Source: as in package hosttest, ResetBeforeResponse.
func (r *WasmRouter) failed(s *hostsim.Stream, d Decision, status int) int {
	for address, i := range r.indexes {
		if i == d.Replica {
			s.SetProperty("upstream.address", []byte(address))
		}
	}
	if status == 0 {
		s.SetProperty("response.code_details", []byte("upstream_reset_before_response_started{connection_termination}"))
		return 503
	}
	s.SetProperty("response.code_details", []byte("via_upstream"))
	return status
}

// Finish releases a session as its client does. Errors: ErrPlugin, hostsim.ErrTrap.
func (r *WasmRouter) Finish(now time.Duration, session string) error {
	r.Advance(now)
	return r.ask(releasePath, session)
}

// ask sends a request that the plugin answers itself, with 200, at once or once it has an answer of its own.
func (r *WasmRouter) ask(path, session string) error {
	s, calls := r.stream(), r.calls
	h := append(r.request(path, session), [2]string{secretHeader, secret})
	step, err := s.RequestHeaders(h, true)
	if err == nil && step.Flow == hostsim.Wait && r.calls > calls {
		r.asked = append(r.asked, heldAsking{s, path, r.clock})
		return nil
	}
	if err == nil {
		err = answered200(s, path, step)
	}
	return errors.Join(err, s.End(hostsim.EndNormal))
}

func answered200(s *hostsim.Stream, path string, step hostsim.Step) error {
	if l := s.LocalReply(); step.Flow != hostsim.Reply || l == nil || l.Status != 200 {
		return fmt.Errorf("%w answered POST %s: %v, %s", ErrPlugin, path, step.Flow, replyOf(s))
	}
	return nil
}

// Members gives the plugin a new configuration where replicas came, went or changed weight, and has it drain or undrain the
// others as its admin endpoint does. Errors: ErrPlugin, hostsim.ErrRefused, hostsim.ErrTrap.
func (r *WasmRouter) Members(now time.Duration, fleet []Member) error {
	r.Advance(now)
	members := remaining(fleet)
	if !slices.Equal(members, r.members) {
		config, err := pluginConfig(r.config.Config, r.config.Policy, members)
		if err != nil {
			return err
		}
		if err := r.host.Reconfigure(config); err != nil {
			return r.explain(err)
		}
		r.host.Drain()
		r.members = members
	}
	r.indexes = make(map[string]int, len(members))
	drained := map[string]bool{}
	for i, m := range fleet {
		if m.Gone {
			continue
		}
		r.indexes[m.Address] = i
		if drained[m.Address] = m.Draining; m.Draining == r.drained[m.Address] {
			continue
		}
		action := "/undrain"
		if m.Draining {
			action = "/drain"
		}
		if err := r.ask(adminPath+action+"?replica="+m.Address, ""); err != nil {
			return err
		}
	}
	r.drained = drained
	return nil
}

// Close ends the host. The error tells of a virtual machine that crashed unseen, in a tick.
func (r *WasmRouter) Close() error {
	err := r.answers(r.clock)
	for _, a := range r.asked { // the run is over before the answer
		err = errors.Join(err, a.stream.End(hostsim.EndClientGone))
	}
	err = errors.Join(err, r.host.Main().Err())
	for i := range r.host.Workers() {
		err = errors.Join(err, r.host.Worker(i).Err())
	}
	return errors.Join(err, r.host.Close())
}
