package plugin

import (
	"strconv"
	"unsafe"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// bodies is what a configuration knows in one worker of its requests' bodies.
type bodies struct {
	// reading says that requests may wait for their bodies.
	reading bool
	// paused are those that do, and cost is what they take, in bytes.
	paused []*turn
	cost   int
	// sparePauses are to be used again.
	sparePauses []*pause
	// came is set when a request that waited has had some of its body. Until then
	// withheld counts requests that had it only once they did not wait any more:
	// Envoy does that unless its configuration of the plugin has
	// allow_on_headers_stop_iteration. off is set when that is certain.
	came, off bool
	withheld  int
	// resumed is when requests last went on without their bodies, in ms.
	resumed int64
	// missed counts the requests without their bodies to warn of.
	missed uint64
	warned warning
}

const (
	// enoughWithheld is the number of requests whose bodies were withheld after
	// which no further one waits: one might be a client's that was slow by chance.
	enoughWithheld = 3
	// atOnce, in ms, is how soon a body that was withheld comes when the request
	// goes on.
	atOnce = 20
	// waitsInAll is the number of body.wait that a request waits at most however
	// slowly its body comes: a few clients must not keep all others from waiting.
	waitsInAll = 10
	// bodyPiece is how much of a body is read at a time: a larger piece might not
	// fit into the memory that is used again for every callback.
	bodyPiece = 16 << 10
)

// mayPause reports whether one more request may wait for its body.
func (b *bodies) mayPause() bool {
	return b.reading && !b.off && len(b.paused) < maxPaused && b.cost < maxPausedBytes
}

// OnHttpRequestBody looks at the next chunk of a request that waits for it.
func (t *turn) OnHttpRequestBody(size int, end bool) types.Action {
	if t.pause == nil { // most chunks of most requests
		return t.passBody()
	}
	return t.bodyCame(size, end)
}

// passBody lets a chunk pass, unless the request waits for something else than its body.
func (t *turn) passBody() types.Action {
	if t.question != nil || t.releasing != nil {
		return abi.HoldBody
	}
	return types.ActionContinue
}

// OnHttpRequestTrailers ends the body of a request that waits for it.
func (t *turn) OnHttpRequestTrailers(int) types.Action {
	if t.pause != nil {
		return t.bodyCame(0, true)
	}
	if t.passBody() != types.ActionContinue {
		return types.ActionPause
	}
	return types.ActionContinue
}

func (t *turn) bodyCame(size int, end bool) types.Action {
	f := t.filter
	w := f.unwait(t)
	now := milliseconds()
	if w.went {
		f.cameLate(w, now)
		f.recycle(w)
		return types.ActionContinue
	}
	f.came, w.came, w.heard = true, true, now
	over := f.read(w, size, now) || end || w.read >= f.config.Body.MaxBytes
	switch {
	case w.reply.status != 0 && over:
		t.answerRelease(w)
		f.recycle(w)
		return types.ActionPause
	case w.reply.status != 0:
		f.wait(t, w)
		return abi.DropBody
	case !over:
		f.wait(t, w)
		return abi.HoldBody
	case t.routePaused(w, now):
		return abi.HoldBody
	}
	f.recycle(w)
	return types.ActionContinue
}

// read reads what is of interest in the current chunk, each byte once, and reports
// whether nothing is of interest behind it.
func (f *filter) read(w *pause, size int, now int64) (enough bool) {
	release := w.reply.status != 0
	for at := 0; at < size && w.read < f.config.Body.MaxBytes; {
		if release && w.id.done() {
			w.read += size - at // dropped unread
			return false
		}
		n := min(bodyPiece, size-at, f.config.Body.MaxBytes-w.read)
		b := abi.RequestBody(at, n)
		if len(b) == 0 {
			break
		}
		at, w.read = at+len(b), w.read+len(b)
		w.id.feed(b)
		if w.prompted {
			w.prompt.feed(b)
		}
		abi.FreeHostMemory()
		if !release && f.decidable(w, now) {
			return true
		}
	}
	return false
}

// decidable reports whether the decision needs no more of the body. A session that
// has a pin needs no prompt, nor does a request without a session.
func (f *filter) decidable(w *pause, now int64) bool {
	if !w.session.ok {
		if !w.id.done() {
			return false
		}
		if w.session = f.sessionIn(w); !w.session.ok || !w.prompted {
			return true
		}
		if w.pool.agreement != nil {
			if w.pool.holds(w.session.key, now) {
				return true
			}
		} else if w.decision, w.decided = w.pool.pinned(w.session.key, now); w.decided {
			return true
		}
	}
	return !w.prompted || w.prompt.done()
}

// sessionIn returns the key of the session that the body names.
func (f *filter) sessionIn(w *pause) (s sessionKey) {
	id := w.id.found()
	f.keyed = append(f.keyed[:0], w.scope...)
	s.key, s.refused, s.ok = f.keyBehind(unsafe.String(unsafe.SliceData(id), len(id)))
	return s
}

// routePaused sends a request on its way by what is known of it, and reports whether it
// waits once more, for etcd: then w is still needed.
func (t *turn) routePaused(w *pause, now int64) (waits bool) {
	var prompt *policy.Prompt
	if w.prompted && w.prompt.Len() > 0 {
		prompt = &w.prompt.Prompt
	}
	if !w.session.ok {
		w.session = t.filter.sessionIn(w)
	}
	s, d := w.session, w.decision
	if s.ok && w.pool.agreement != nil {
		return t.agree(w.pool, s.key, w, now)
	}
	if !w.decided {
		d = w.pool.decide(s.key, s.ok, s.refused, prompt, now)
	}
	t.route(w.pool, s.key, s.ok, d, now)
	return false
}

// answerRelease answers a release at the end of its body, which may name the
// session.
func (t *turn) answerRelease(w *pause) {
	f := t.filter
	if id := w.id.found(); w.reply.unnamed && len(id) > 0 {
		w.reply = released(string(id))
		if s := f.sessionIn(w); s.ok {
			f.finish(s.key, &w.reply)
		}
	}
	t.reply(w.reply, w.stream)
}

// resumeLate lets those requests go on whose bodies have not come in time.
func (f *filter) resumeLate(now int64) {
	resumed := false
	wait := f.config.Body.Wait.Milliseconds()
	for i := 0; i < len(f.paused); {
		t := f.paused[i]
		if now-t.pause.heard < wait && now-t.pause.began < waitsInAll*wait {
			i++
			continue
		}
		f.resume(t, now) // another one takes its place
		resumed = true
	}
	if resumed {
		abi.EnterPlugin(f.id)
		f.resumed = milliseconds()
	}
	f.warnMissed(now)
}

func (f *filter) resume(t *turn, now int64) {
	w := f.unwait(t)
	if !abi.EnterStream(w.stream) {
		return
	}
	if w.reply.status != 0 {
		t.answerRelease(w)
		f.recycle(w)
		return
	}
	waits := false
	defer func() {
		if !waits {
			abi.ContinueRequest() // also when the decision panics
		}
	}()
	f.missed++
	w.pool.store.fault(faultBodyLate)
	if waits = t.routePaused(w, now); waits {
		return
	}
	if w.came {
		f.recycle(w)
	} else {
		w.went, t.pause = true, w
	}
}

// cameLate looks at a body that came when its request had gone on without it.
func (f *filter) cameLate(w *pause, now int64) {
	if f.came || now-f.resumed > atOnce {
		return
	}
	f.withheld++
	f.off = f.withheld >= enoughWithheld
}

// warnMissed tells the operator of requests that did without their bodies.
func (f *filter) warnMissed(now int64) {
	if f.missed == 0 || !f.warned.due(now) {
		return
	}
	why := " requests were routed without their bodies, which did not come within " + f.config.Body.Wait.String() +
		": is the gateway's buffer limit below body.max_bytes, or are clients slow?"
	if !f.came {
		why = " requests were routed without their bodies, which the gateway withholds:" +
			" set allow_on_headers_stop_iteration: true beside this plugin's configuration"
	}
	proxywasm.LogWarn("pinwheel: " + strconv.FormatUint(f.missed, 10) + why)
	f.missed = 0
}
