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
	after := reply.after
	if a.tell(o, after.done) {
		after.left++
	} else {
		a.owe(o)
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
		if r.Code != etcd.OK {
			a.owe(o)
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

// payOwed tells etcd some of what it has still to be told.
func (a *agreement) payOwed() {
	const atOnce = 100
	for range min(len(a.owed), atOnce) {
		o := a.owed[0]
		a.owed = a.owed[1:]
		if a.overruled(o) {
			continue
		}
		if !a.well() || !a.tell(o, func() {}) {
			a.owe(o)
			return
		}
	}
}

// overruled reports whether a drain was begun or ended, and the opposite has been ordered since, by another worker or gateway.
func (a *agreement) overruled(o instruction) bool {
	i := a.store.view.Index(a.store.member(o.address))
	return (o.kind == instructDrain || o.kind == instructUndrain) && i >= 0 && a.store.view.List[i].Drained != (o.kind == instructDrain)
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
