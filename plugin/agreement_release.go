package plugin

import (
	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/plugin/etcd"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// instruction is something that etcd has still to be told: of a session that was released, a drain, or a reset.
type instruction struct {
	kind    instructionKind
	session policy.Hash
	// address is the home of the session as it is known here, "" if it is not, or of the replica.
	address string
	tries   int
}

type instructionKind uint8

const (
	instructRelease instructionKind = iota
	instructDrain
	instructUndrain
	instructReset
)

// maxOwed bounds the instructions that a worker keeps while etcd is away: of further ones the releases are lost, and their
// sessions' homes stay until their leases end.
const maxOwed = 10_000

// queued is an instruction on its way; done is called when it was carried out, or is owed.
type queued struct {
	instruction
	done func()
}

// maxUnderway bounds the instructions that a worker sends at a time: one request may release 2048 sessions, and Envoy refuses
// more than 1024 requests to a cluster unless told otherwise.
const maxUnderway = 128

// releasing is the plugin's own answer to a request, which waits for etcd to do what was asked for.
type releasing struct {
	turn   *turn // nil: its client has gone, or it does not wait yet
	stream uint32
	reply  localReply
	left   int // instructions under way
	began  int64
}

// give tells etcd, and has the answer to the client wait for it. What cannot be told now is told later.
func (a *agreement) give(o instruction, reply *localReply) {
	if !a.well() {
		a.owe(o)
		return
	}
	if reply.after == nil {
		reply.after = &releasing{}
	}
	reply.after.left++
	a.queue = append(a.queue, queued{o, reply.after.done})
	a.sendQueued()
}

// sendQueued sends instructions of the queue as long as there is room.
func (a *agreement) sendQueued() {
	for len(a.queue) > 0 && a.underway < maxUnderway {
		q := a.queue[0]
		a.queue = a.queue[1:]
		sent := a.well() && a.tell(q.instruction, func() {
			a.underway--
			q.done()
			a.sendQueued()
		})
		if sent {
			a.underway++
		} else {
			a.owe(q.instruction)
			q.done()
		}
	}
}

func (a *agreement) owe(o instruction) {
	if len(a.owed) < maxOwed {
		a.owed = append(a.owed, o)
	}
}

// tell sends an instruction to etcd; done is called when that is over. It is false if the gateway cannot send it.
func (a *agreement) tell(o instruction, done func()) bool {
	now := milliseconds()
	if o.kind == instructRelease {
		return a.release(o, now, done)
	}
	body := ""
	switch o.kind {
	case instructDrain, instructUndrain:
		body = a.keys.Drain(o.address, o.kind == instructDrain)
	case instructReset:
		body = a.keys.Reset()
	}
	return a.call(callOrder, etcd.TxnPath, body, func(r etcd.Answer) {
		switch {
		case r.Code != etcd.OK:
			a.owe(o)
		case o.kind == instructReset:
			a.update(func(state *agreementState) bool {
				state.reset = r.Revision
				return true
			})
		}
		done()
	})
}

func (a *agreement) release(o instruction, now int64, done func()) bool {
	leases := a.leases(o.session, now)
	again := func() {
		if o.tries++; o.tries > maxQuestions || !a.release(o, milliseconds(), done) {
			a.owe(instruction{kind: instructRelease, session: o.session, address: o.address})
			done()
		}
	}
	return a.call(callRelease, etcd.TxnPath, a.keys.Release(sessionName(o.session), o.address, leases), func(r etcd.Answer) {
		switch {
		case r.Code == etcd.NotFound:
			a.grant(leases, again)
		case r.Code != etcd.OK:
			a.owe(o)
			done()
		case !r.Succeeded && r.Home != "": // it has another home than was known here
			o.address = r.Home
			again()
		default:
			done()
		}
	})
}

// payOwed tells etcd what it has still to be told, and what holds.
func (a *agreement) payOwed() {
	owed := a.owed
	a.owed = nil
	for _, o := range owed {
		if !a.overruled(o) {
			a.queue = append(a.queue, queued{o, func() {}})
		}
	}
	a.sendQueued()
}

// overruled reports whether something else holds by now: a session that was released has begun anew, or another worker or
// gateway has ordered the opposite of a drain.
func (a *agreement) overruled(o instruction) bool {
	switch o.kind {
	case instructRelease:
		return a.store.homeOf(o.session) != 0
	case instructDrain, instructUndrain:
		i := a.store.view.Index(a.store.member(o.address))
		return i >= 0 && a.store.view.List[i].Drained != (o.kind == instructDrain)
	}
	return false
}

// reply answers the request in the gateway's place, once etcd has done what the request asks for.
func (t *turn) reply(a localReply, stream uint32) {
	if a.after == nil || a.after.left == 0 {
		a.send()
		return
	}
	r := a.after
	r.turn, r.stream, r.reply, r.began = t, stream, a, milliseconds()
	t.releasing = r
	t.filter.calls.replying(r)
}

// done is called when an instruction was carried out, or is owed.
func (r *releasing) done() {
	if r.left--; r.left == 0 {
		r.send()
	}
}

func (r *releasing) send() {
	t := r.turn
	if t == nil {
		return
	}
	t.abandonReply()
	if abi.EnterStream(r.stream) {
		r.reply.send()
	}
	abi.EnterPlugin(t.filter.id)
}

// abandonReply forgets the answer that the request waits for, if it does.
func (t *turn) abandonReply() {
	if r := t.releasing; r != nil {
		delete(t.filter.calls.answering, r)
		t.releasing, r.turn = nil, nil
	}
}
