package hostsim

// Answers of callbacks. Source: proxy-wasm specification 0.2.1, proxy_action_t, and the values beyond it that
// proxy-wasm-cpp-host knows (include/proxy-wasm/context_interface.h).
const (
	answerContinue = 0

	headersStop           = 1 // pause; becomes headersStopAll unless the plugin may see bodies meanwhile
	headersContinueAndEnd = 2 // Envoy takes it for continue
	headersStopAllBuffer  = 3
	headersStopAll        = 4

	dataStopAndBuffer    = 1
	dataStopAndWatermark = 2
	dataStopNoBuffer     = 3
)

// iteration is where a direction stands.
type iteration uint8

const (
	flowing    iteration = iota
	stopped              // paused; further parts are still shown to the plugin
	stoppedAll           // paused; further parts wait unseen
)

// half is one direction of a stream: what has arrived, what the plugin may touch, and what may go on.
//
//  1. Headers go on at most once, and before any data.
//  2. A byte is in exactly one of chunk, buffered, held and out, or has been dropped or passed on.
//  3. In state flowing, buffered and held are empty.
type half struct {
	stream  *Stream
	reverse bool // the response

	headers, trailers Headers
	hasHeaders        bool
	hasTrailers       bool
	complete          bool // the caller has delivered the end

	state        iteration
	limited      bool // over the limit while stoppedAll is an error too
	headersOpen  bool // the plugin may use the map: until it lets the headers themselves go on, or resumes
	trailersOpen bool
	bodyOpen     bool
	buffering    bool // the last data answer was dataStopAndBuffer: the callback sees the whole buffer
	atEnd        bool // the callback running or last run had end of stream

	chunk    []byte // what a data callback sees, unless buffering
	buffered []byte // held back with the plugin's knowledge
	held     []byte // arrived in stoppedAll

	heldMetadata []int // sizes of METADATA frames that arrived in stoppedAll

	headersOut bool
	out        Step
	endOut     bool

	status   string // of a response, as it came
	received int    // bytes of body that came
	passed   int    // bytes of body that went on
}

// kind is that of this direction's headers.
func (d *half) kind() MapKind {
	if d.reverse {
		return MapResponseHeaders
	}
	return MapRequestHeaders
}

// view is the buffer that the plugin reads.
func (d *half) view() *[]byte {
	if d.buffering {
		return &d.buffered
	}
	return &d.chunk
}

func (d *half) setView(data []byte) { *d.view() = data }

func (d *half) open() bool { return d.bodyOpen }

// shut ends the plugin's access to this direction's headers, body and trailers.
func (d *half) shut() { d.headersOpen, d.trailersOpen, d.bodyOpen = false, false, false }

// take returns what may go on since the last call.
func (d *half) take() Step {
	st := d.out
	d.out = Step{}
	d.passed += len(st.Data)
	if d.state != flowing {
		st.Flow = Wait
	}
	return st
}

// call runs one of this direction's callbacks, or answers continue where there is none to run.
func (d *half) call(e *export, size int, withEnd, end bool) (uint64, error) {
	if e == nil {
		return answerContinue, nil
	}
	s := d.stream
	if withEnd && e.params > 2 { // ABI 0.1.0 has no end of stream on headers
		var flag uint64
		if end {
			flag = 1
		}
		return s.vm.callback(&s.guestContext, e, uint64(s.id), uint64(size), flag)
	}
	return s.vm.callback(&s.guestContext, e, uint64(s.id), uint64(size))
}

// exports are this direction's callbacks; all nil on a stream that passes without the plugin.
func (d *half) exports() (headers, body, trailers *export) {
	v := d.stream.vm
	switch {
	case v == nil:
		return nil, nil, nil
	case d.reverse:
		return v.responseHeaders, v.responseBody, v.responseTrailers
	}
	return v.requestHeaders, v.requestBody, v.requestTrailers
}

// answered is true when the callback that has just returned sent a local reply, which overrides its answer.
func (d *half) answered() bool { return d.stream.vm != nil && d.stream.vm.stopped }

// settled does what the callback has asked for, before its answer is acted on, and reports whether there is nothing left
// to answer. Source: proxy-wasm-cpp-host, DeferAfterCallActions: continue_stream in a callback lets the stream go on
// first, and then an answer to pause pauses it for good; seen on Envoy 1.36.4 and 1.40.0.
func (d *half) settled() bool {
	if v := d.stream.vm; v != nil {
		v.settle()
	}
	return d.stream.over() || d.stream.local != nil && !d.reverse
}

// deliverHeaders shows the headers to the plugin and acts on its answer.
func (d *half) deliverHeaders(end bool) error {
	e, _, _ := d.exports()
	d.headersOpen, d.atEnd, d.complete = true, end, end
	d.status = d.headers.Value(":status")
	answer, err := d.call(e, len(d.headers), true, end)
	if err != nil {
		return err
	}
	answer = d.headersAnswer(uint32(answer))
	if d.settled() {
		return nil
	}
	switch answer {
	case answerContinue:
		if d.headersOut {
			d.stream.warn(LogError, "proxy_continue_stream in a headers callback that does not pause: Envoy lets the headers go on twice")
		}
		d.headersOpen = false
		d.release()
	case headersStop:
		d.state = stopped
	default:
		d.state = stoppedAll
		d.limited = answer == headersStopAllBuffer
	}
	return nil
}

// headersAnswer maps the module's answer to what the gateway does. Source: proxy-wasm-cpp-host,
// ContextBase::convertVmCallResultToFilterHeadersStatus; without the flag a pause holds the body back as well
// (proxy-wasm-cpp-host issue 143).
func (d *half) headersAnswer(answer uint32) uint64 {
	switch {
	case d.answered() || answer > headersStopAll:
		return headersStopAll
	case answer == headersStop && !d.config().AllowOnHeadersStopIteration:
		return headersStopAll
	case answer == headersContinueAndEnd:
		return answerContinue
	}
	return uint64(answer)
}

// deliverData shows a chunk to the plugin and acts on its answer. While the plugin buffers, it sees the whole buffer with
// the chunk already in it. Source: Envoy, Context::decodeData, and FilterManager's commonHandleAfterDataCallback.
func (d *half) deliverData(chunk []byte, end bool) error {
	d.complete = d.complete || end
	d.received += len(chunk)
	if d.state == stoppedAll {
		d.held = append(d.held, chunk...)
		return d.checkLimit(d.held, d.limited)
	}
	if d.buffering {
		d.buffered = append(d.buffered, chunk...)
		if d.reverse && d.over(d.buffered) {
			// Of a request the plugin sees what is too much, of a response it does not: seen on Envoy 1.36.4 and 1.40.0.
			return d.checkLimit(d.buffered, true)
		}
	} else {
		d.chunk = chunk
	}
	_, e, _ := d.exports()
	d.bodyOpen, d.atEnd = true, end
	answer, err := d.call(e, len(*d.view()), true, end)
	if err != nil {
		return err
	}
	if d.answered() || answer > dataStopNoBuffer {
		answer = dataStopNoBuffer
	}
	if d.settled() {
		return nil
	}
	return d.dataAnswer(uint32(answer))
}

func (d *half) dataAnswer(answer uint32) error {
	whole := d.buffering // the chunk is in the buffer already
	if !whole && answer != dataStopNoBuffer {
		if len(d.buffered) == 0 && answer == answerContinue {
			d.out.Data = append(d.out.Data, d.chunk...)
		} else {
			d.buffered = append(d.buffered, d.chunk...)
		}
	}
	d.chunk, d.buffering = nil, answer == dataStopAndBuffer
	if answer == answerContinue {
		d.state, d.bodyOpen = flowing, false
		d.release()
		return nil
	}
	// Paused without buffering, the chunk is out of the plugin's reach.
	d.state, d.bodyOpen = stopped, d.buffering
	if !d.buffering && d.over(d.buffered) {
		d.state, d.limited = stoppedAll, false // the gateway stops reading until the plugin resumes
	}
	return d.checkLimit(d.buffered, d.buffering)
}

// deliverTrailers shows the trailers to the plugin and acts on its answer.
func (d *half) deliverTrailers() error {
	d.complete = true
	if d.state == stoppedAll {
		return nil
	}
	_, _, e := d.exports()
	d.trailersOpen = true
	answer, err := d.call(e, len(d.trailers), false, false)
	if err != nil {
		return err
	}
	stop := uint32(answer) != answerContinue || d.answered()
	if d.settled() {
		return nil
	}
	if stop {
		d.state = stopped
		return nil
	}
	d.state, d.buffering, d.trailersOpen = flowing, false, false
	d.release()
	return nil
}

// release lets go on whatever is held: headers, buffered data, and the end if it has arrived.
func (d *half) release() {
	if !d.headersOut && d.hasHeaders {
		d.headersOut, d.out.Headers = true, true
	}
	if len(d.buffered) > 0 {
		d.out.Data = append(d.out.Data, d.buffered...)
		d.buffered = nil
	}
	if d.complete && !d.endOut && len(d.held) == 0 {
		d.endOut, d.out.End = true, true
	}
}

// resume is what continue_stream does to a paused direction. Held back without the plugin's knowledge, body and trailers
// now come to it; what it has seen goes on.
func (d *half) resume() {
	if d.stream.over() {
		return
	}
	all := d.state == stoppedAll
	d.state, d.buffering = flowing, false
	if !all {
		d.release()
		return
	}
	d.resumeAll()
}

// resumeAll lets the headers go on and shows the plugin what has waited. The end goes with the part that carries it.
func (d *half) resumeAll() {
	held, complete := d.held, d.complete
	d.held, d.complete = nil, d.atEnd
	d.received -= len(held) // to be delivered again
	d.release()
	if d.atEnd {
		return
	}
	err := d.resumeMetadata()
	endInData := complete && !d.hasTrailers
	if err == nil && (len(held) > 0 || endInData) {
		err = d.deliverData(held, endInData)
	}
	if err == nil && complete && d.hasTrailers && d.stream.local == nil {
		err = d.deliverTrailers()
	}
	if err != nil {
		d.stream.fail()
	}
}

func (d *half) config() *Config { return &d.stream.worker.host.config }

func (d *half) over(data []byte) bool { return len(data) > d.config().BufferLimit }

// checkLimit answers the stream when a buffer that must fit does not. Source: Envoy; a request of 1048577 bytes was
// answered 413 with the default limit of 1 MiB, one of 1048576 was not.
func (d *half) checkLimit(data []byte, must bool) error {
	if !must || !d.over(data) {
		return nil
	}
	d.state = stoppedAll
	reply := &LocalReply{Status: 413, Body: []byte("Payload Too Large"), Details: "request_payload_too_large", GRPCStatus: -1}
	if d.reverse {
		reply = &LocalReply{Status: 500, Body: []byte("Internal Server Error"), Details: "response_payload_too_large", GRPCStatus: -1}
	}
	d.stream.local = nil // where the plugin holds back its own reply, this one takes its place
	d.stream.answer(reply)
	return nil
}
