package replay

import (
	"errors"
	"fmt"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// longestHold is how long the plugin may keep a request: what it waits for comes within its timeouts, or never.
const longestHold = time.Minute

var errHeld = errors.New("it has kept it for a minute")

// heldTurn is a turn that the plugin has paused.
type heldTurn struct {
	stream  *hostsim.Stream
	session string
	since   time.Duration
}

// heldAsking is a request to the plugin itself, such as a release, that it has not answered yet.
type heldAsking struct {
	stream *hostsim.Stream
	path   string
	since  time.Duration
}

// Due is when the plugin's next tick or answer falls due, with an Etcd; without one nobody else hears of those.
func (r *WasmRouter) Due() (at time.Duration, ok bool) {
	if r.config.Etcd == nil {
		return 0, false
	}
	after, ok := r.host.NextEvent()
	return r.clock + after, ok
}

// Made returns the decisions about turns that were open. Errors: those of Turn, Finish and Members, for what these left open.
func (r *WasmRouter) Made(now time.Duration) (made []Decision, err error) {
	r.Advance(now)
	err = r.answers(now)
	kept := r.held[:0]
	for _, h := range r.held {
		step := h.stream.RequestReady()
		d := Decision{Ticket: h.stream}
		var wrong error
		switch {
		case step.Flow != hostsim.Wait:
			d.Replica, wrong = r.replica(h.stream, step)
		case now-h.since > longestHold:
			wrong = fmt.Errorf("%w: %w", ErrPlugin, errHeld)
		default:
			kept = append(kept, h)
			continue
		}
		if wrong != nil {
			err = errors.Join(err, fmt.Errorf("session %s at %v: %w", h.session, now, wrong), h.stream.End(hostsim.EndClientGone))
			continue
		}
		d.Reason = r.nextReason(h.stream.Worker().Index())
		made = append(made, d)
	}
	clear(r.held[len(kept):])
	if r.held = kept; len(kept) == 0 {
		clear(r.reasons)
	}
	return made, err
}

// answers ends the requests that the plugin has answered itself meanwhile.
func (r *WasmRouter) answers(now time.Duration) (err error) {
	kept := r.asked[:0]
	for _, a := range r.asked {
		step := a.stream.RequestReady()
		if step.Flow == hostsim.Wait && now-a.since <= longestHold {
			kept = append(kept, a)
			continue
		}
		err = errors.Join(err, answered200(a.stream, a.path, step), a.stream.End(hostsim.EndNormal))
	}
	clear(r.asked[len(kept):])
	r.asked = kept
	return err
}

// nextReason is the first of the reasons that a worker has logged since it let turns wait. Those of one worker that go on at one
// moment may change theirs, which nobody notices: reasons are counted.
func (r *WasmRouter) nextReason(worker int) (reason string) {
	if list := r.reasons[worker]; len(list) > 0 {
		reason, r.reasons[worker] = list[0], list[1:]
	}
	return reason
}
