package plugin

import (
	"encoding/binary"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// sessionKey is the key of a request's session, or the reason why it has none.
type sessionKey struct {
	key     policy.Key
	refused policy.Reason
	ok      bool
}

// pause is a request that waits for its body, or one that the plugin itself
// answers, at the end of its body. Of the body nothing is kept but what is found in it.
type pause struct {
	stream  uint32 // context id
	pool    *pool
	session sessionKey
	// scope goes before an id that the body names in the session's key.
	scope []byte
	id    bodyID
	// prompt is looked for in the body if the policy asks for it.
	prompt   bodyPrompt
	prompted bool
	// decision is there before the whole body if decided.
	decision policy.Decision
	decided  bool
	// reply answers such a request; its status is 0 in any other.
	reply localReply
	// read is the number of bytes read.
	read int
	// began is when the request was paused, heard when it was or last had some of
	// its body, in ms.
	began, heard int64
	// came says that it had any; went that it went on without.
	came, went bool
	// at is the request's place in bodies.paused unless it went.
	at int
}

const (
	// maxPaused and maxPausedBytes bound the requests of one worker that wait at a
	// time, and what they take: pauseBytes, an id, and the scope.
	maxPaused      = 4096
	maxPausedBytes = 16 << 20
	pauseBytes     = 1024
	// maxSparePauses bounds the pauses that are kept to be used again.
	maxSparePauses = 64
)

// waits pauses the request if its body may tell more of it, and reports whether it
// did.
func (t *turn) waits(p *pool, r *request, s sessionKey, now int64) bool {
	f := t.filter
	inBody := s.refused == policy.Keyless && !s.ok && len(f.config.Session.Body) > 0
	if !inBody && !(s.ok && p.readsPrompts()) || !r.hasJSON() {
		return false
	}
	switch {
	case f.mayPause():
	case f.off:
		f.missed++
		p.store.fault(faultBodyWithheld)
		return false
	default:
		p.store.fault(faultBodyBusy)
		return false
	}
	// Until a host is named here the client names none, whatever happens.
	f.strip()
	w := f.newPause(r, inBody, now)
	w.pool, w.session, w.prompted = p, s, p.readsPrompts()
	if w.prompted {
		w.prompt.reset(binary.LittleEndian.Uint64(f.secret[:]))
	}
	f.wait(t, w)
	return true
}

// holdReply keeps the plugin's own answer until the request's body has ended: one
// that comes earlier costs the client its connection. It reports whether it waits.
func (t *turn) holdReply(r *request, a localReply) bool {
	f := t.filter
	if !f.mayPause() {
		return false
	}
	w := f.newPause(r, a.unnamed && r.hasJSON(), milliseconds())
	w.reply = a
	f.wait(t, w)
	return true
}

// newPause returns a pause that looks for an id in the body if inBody.
func (f *filter) newPause(r *request, inBody bool, now int64) *pause {
	var w *pause
	if n := len(f.sparePauses); n > 0 {
		w = f.sparePauses[n-1]
		f.sparePauses = f.sparePauses[:n-1]
	} else {
		w = &pause{}
	}
	*w = pause{began: now, heard: now, scope: r.appendScope(w.scope[:0]), id: w.id}
	paths := f.config.Session.Body
	if !inBody {
		paths = nil
	}
	w.id.reset(paths, f.config.Session.MaxIDBytes)
	return w
}

// wait makes the request one that waits. It is the last thing that a callback does
// with it: what fails before leaves nobody waiting.
func (f *filter) wait(t *turn, w *pause) {
	w.stream = abi.CurrentStream()
	t.pause, w.at = w, len(f.paused)
	f.paused = append(f.paused, t)
	f.cost += f.costOf(w)
}

func (f *filter) costOf(w *pause) int {
	return pauseBytes + f.config.Session.MaxIDBytes + len(w.scope)
}

// unwait takes the request out of those that wait and returns its pause, nil if it
// has none.
func (f *filter) unwait(t *turn) *pause {
	w := t.pause
	if w == nil {
		return nil
	}
	if !w.went {
		f.cost -= f.costOf(w)
		last := len(f.paused) - 1
		f.paused[w.at] = f.paused[last]
		f.paused[w.at].pause.at = w.at
		f.paused[last] = nil
		f.paused = f.paused[:last]
	}
	t.pause = nil
	return w
}

// recycle keeps a pause for another request.
func (f *filter) recycle(w *pause) {
	if w != nil && len(f.sparePauses) < maxSparePauses {
		f.sparePauses = append(f.sparePauses, w)
	}
}
