package hostsim

import "slices"

// actionKind is something that a module asked for in a callback and that happens after it.
type actionKind uint8

const (
	actionContinueRequest actionKind = iota
	actionContinueResponse
	actionReply
	actionReset
	actionRemoveRoot
	actionDo
)

type action struct {
	kind   actionKind
	stream *Stream
	reply  *LocalReply
	root   *root
	do     func()
}

// postpone queues an action until the callback has returned.
func (v *vm) postpone(a action) { v.pending = append(v.pending, a) }

// settle runs what callbacks have asked for, in order. A callback that runs on the way settles what is left before its own
// answer counts. Source: proxy-wasm-cpp-host, WasmBase::doAfterVmCallActions.
func (v *vm) settle() {
	v.stopped = false
	for ran := 0; len(v.pending) > 0; ran++ {
		if ran == v.host.eventLimit {
			v.die(v.trapped("what it asked for after a callback", errEndless))
			return
		}
		a := v.pending[0]
		v.pending = slices.Delete(v.pending, 0, 1)
		v.act(a)
	}
}

func (v *vm) act(a action) {
	switch a.kind {
	case actionRemoveRoot:
		v.removeRoot(a.root)
		return
	case actionDo:
		a.do()
		return
	case actionContinueRequest:
		a.stream.request.resume()
	case actionContinueResponse:
		if s := a.stream; !s.response.hasHeaders && !s.over() && !s.ending {
			s.warn(LogCritical, "proxy_continue_stream of a response that has not come: Envoy dies of it")
			s.cut("wasm_continue_stream")
			break
		}
		a.stream.response.resume()
	case actionReply, actionReset:
		if a.stream.ending {
			a.stream.warn(LogCritical, "a local reply or proxy_close_stream at the end of a stream: Envoy calls proxy_on_log again and may die")
			return
		}
		if a.kind == actionReset {
			a.stream.cut("wasm_close_stream")
			break
		}
		a.stream.answer(a.reply)
	}
	a.stream.wakeUp()
}
