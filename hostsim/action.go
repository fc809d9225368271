package hostsim

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

// postpone queues an action until the callback has returned and its answer has been acted on.
func (v *vm) postpone(a action) { v.pending = append(v.pending, a) }

// settle runs what callbacks have asked for, in order, and what the callbacks of that ask for in turn. Callers have acted
// on the answer of their own callback before. Source: proxy-wasm-cpp-host, WasmBase::doAfterVmCallActions.
func (v *vm) settle() {
	if v.settling {
		return
	}
	v.settling, v.stopped = true, false
	for i := 0; i < len(v.pending); i++ {
		v.act(v.pending[i])
	}
	clear(v.pending)
	v.pending = v.pending[:0]
	v.settling = false
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
		a.stream.response.resume()
	case actionReply:
		a.stream.answer(a.reply)
	case actionReset:
		a.stream.cut("wasm_close_stream")
	}
	a.stream.wakeUp()
}
