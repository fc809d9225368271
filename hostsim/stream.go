package hostsim

import "fmt"

// Flow says what the gateway does next with a stream.
type Flow uint8

const (
	// Forward means: pass on what the Step carries and go on.
	Forward Flow = iota
	// Wait means that the plugin has paused this direction: pass on what the Step carries, if anything, and nothing more
	// until a later Step or Stream.Wake. Parts that arrive meanwhile still go to the stream.
	Wait
	// Reply means that the stream is answered by the plugin or the host: send Stream.LocalReply to the client, make no
	// further steps and no upstream request, then End.
	Reply
	// Reset means that the stream is cut: close it on both sides, then End.
	Reset
)

// String returns forward, wait, reply or reset.
func (f Flow) String() string {
	switch f {
	case Forward:
		return "forward"
	case Wait:
		return "wait"
	case Reply:
		return "reply"
	case Reset:
		return "reset"
	}
	return fmt.Sprintf("Flow(%d)", uint8(f))
}

// Step is what a call into the plugin lets through.
type Step struct {
	// Flow is what to do next.
	Flow Flow
	// Headers is true when the headers of this direction go on now, which happens once. Stream.Headers has them.
	Headers bool
	// Data is the part of the body that goes on now. The caller owns it.
	Data []byte
	// End is true when the message ends after Data, with the trailers if there are any.
	End bool
}

// Stream is one HTTP request and its response on one worker. A caller hands it the parts of the request, then those of
// the response, each in order: headers once, body in chunks of any number, trailers at most once; and ends it by End. The
// last part of a message is the one with end of stream, or the trailers. A response may begin before the request is
// complete.
type Stream struct {
	guestContext
	worker *Worker
	number uint64 // in the recording
	vm     *vm    // nil before begin, and for good where the stream passes without the plugin

	begun    bool
	request  half
	response half

	local      *LocalReply
	localReady bool
	wasCut     bool
	ending     bool // log, done and delete run or have run
	ended      bool
	logging    bool

	details     string
	properties  map[string][]byte
	filterState map[string][]byte
	wake        chan struct{}
}

// NewStream begins a stream on this worker. The module hears of it at the first callback. It never fails: on a crashed
// worker the failure policy decides what the stream answers.
func (w *Worker) NewStream() *Stream {
	s := &Stream{worker: w}
	s.stream = s
	s.request.stream, s.response.stream, s.response.reverse = s, s, true
	if r := w.recording(); r != nil {
		s.number = r.nextStream()
	}
	w.mu.Lock()
	w.open++
	w.mu.Unlock()
	return s
}

// over is true when nothing can happen to the stream any more but its end.
func (s *Stream) over() bool { return s.ended || s.wasCut || s.localReady }

// begin makes the stream known to the module, once.
func (s *Stream) begin() error {
	if s.begun {
		return nil
	}
	s.begun = true
	v := s.worker.serving()
	if v == nil {
		if s.worker.host.config.FailurePolicy != FailOpen {
			s.fail()
		}
		return nil
	}
	s.vm = v
	s.root = v.activeRoot()
	s.root.streams++
	v.newContext(&s.guestContext)
	return v.tellCreate(&s.guestContext, s.root.id)
}

// step runs one part of a message: it checks the order, runs the part through the plugin by deliver, and says what may go
// on.
func (s *Stream) step(d *half, inOrder bool, deliver func() error) (Step, error) {
	switch {
	case s.ended:
		return Step{Flow: Reset}, ErrStreamEnded
	case s.over() || s.local != nil:
		return s.outcome(d), nil
	case !inOrder:
		return Step{Flow: Reset}, ErrOrder
	}
	err := s.begin()
	if err == nil && !s.over() {
		if s.vm != nil && s.vm.dead != nil {
			s.fail()
		} else {
			err = deliver()
		}
	}
	if err != nil {
		s.fail()
	}
	if s.vm != nil {
		s.vm.settle()
	}
	return s.outcome(d), err
}

// outcome says how the stream stands for direction d.
func (s *Stream) outcome(d *half) Step {
	s.finishReply()
	switch {
	case s.wasCut:
		return Step{Flow: Reset}
	case s.localReady:
		return Step{Flow: Reply}
	case s.local != nil:
		return Step{Flow: Wait}
	}
	return d.take()
}

// Wake receives a value when something outside the caller's own steps has moved a waiting stream: the plugin resumed,
// answered or cut it from a tick or from another stream, or crashed. Then call RequestReady and ResponseReady. It may also
// receive one after the caller's own steps. Values count from the first call of Wake on: make it before the step that may
// wait, or look once at RequestReady afterwards.
func (s *Stream) Wake() <-chan struct{} {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	if s.wake == nil {
		s.wake = make(chan struct{}, 1)
	}
	return s.wake
}

func (s *Stream) wakeUp() {
	if s.wake == nil {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// RequestReady returns what has become free to go upstream since the last step.
func (s *Stream) RequestReady() Step { return s.readyOf(&s.request) }

// ResponseReady returns what has become free to go to the client since the last step.
func (s *Stream) ResponseReady() Step { return s.readyOf(&s.response) }

func (s *Stream) readyOf(d *half) Step {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	if s.vm != nil && s.vm.dead != nil && !s.ended && d.state != flowing {
		s.fail()
	}
	return s.outcome(d)
}

// warn logs what hostsim does better than Envoy, which a plugin must not rely on.
func (s *Stream) warn(level LogLevel, text string) {
	s.worker.host.log(s.worker.index, level, "hostsim: "+text)
}

// Headers returns a copy of a header map as it stands, with the plugin's changes; nil when it has not arrived.
func (s *Stream) Headers(kind MapKind) Headers {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	if m := s.headerMap(kind); m != nil {
		return m.Clone()
	}
	return nil
}

// headerMap finds a map that has arrived.
func (s *Stream) headerMap(kind MapKind) *Headers {
	switch {
	case kind == MapRequestHeaders && s.request.hasHeaders:
		return &s.request.headers
	case kind == MapRequestTrailers && s.request.hasTrailers:
		return &s.request.trailers
	case kind == MapResponseHeaders && s.response.hasHeaders:
		return &s.response.headers
	case kind == MapResponseTrailers && s.response.hasTrailers:
		return &s.response.trailers
	}
	return nil
}

// openMap finds a map that the plugin may use now. Writing trailers in the last body callback creates them. Source:
// Envoy, Context::getMap and getConstMap.
func (s *Stream) openMap(kind MapKind, write bool) *Headers {
	if s.logging && !write {
		if kind == MapRequestTrailers {
			return nil
		}
		return s.headerMap(kind)
	}
	d := &s.request
	if kind == MapResponseHeaders || kind == MapResponseTrailers {
		d = &s.response
	}
	switch kind {
	case MapRequestHeaders, MapResponseHeaders:
		if d.headersOpen {
			return &d.headers
		}
	case MapRequestTrailers, MapResponseTrailers:
		if write && !d.hasTrailers && d.bodyOpen && d.atEnd {
			d.hasTrailers, d.trailersOpen = true, true
		}
		if d.trailersOpen {
			return &d.trailers
		}
	}
	return nil
}

// LocalReply returns the stream's local reply once it is complete, or nil.
func (s *Stream) LocalReply() *LocalReply {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	if !s.localReady {
		return nil
	}
	return s.local
}

// ID is the context id by which the plugin knows the stream, or 0 before its first callback.
func (s *Stream) ID() uint32 {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	return s.id
}

// Worker is the worker that serves the stream.
func (s *Stream) Worker() *Worker { return s.worker }
