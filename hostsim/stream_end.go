package hostsim

// EndReason says how a stream ended. It sets the properties response.code_details and response.flags where the caller has
// not set them.
type EndReason uint8

const (
	// EndNormal is a complete response, or one given by a local reply.
	EndNormal EndReason = iota
	// EndClientGone is a client that left.
	EndClientGone
	// EndUpstreamReset is an upstream connection that broke.
	EndUpstreamReset
	// EndTimeout is a route timeout.
	EndTimeout
)

// Response flags as the property response.flags answers them. Values as seen on Envoy 1.36.4 and 1.40.0.
const (
	flagTimeout    = 4
	flagTerminated = 64
	flagClientGone = 16384
	flagBrokenOff  = 8388608
)

// End ends the stream: log, done and delete, exactly once however often it is called, also when no headers ever came. A
// virtual machine that has died hears nothing. The error wraps ErrTrap when the plugin crashed in this call.
func (s *Stream) End(reason EndReason) error {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	if s.ended {
		return nil
	}
	s.recordEnd(reason)
	err := s.begin()
	s.noteEnd(reason)
	s.ended = true // what the plugin asks for from here on, such as a reply, comes too late
	if s.vm != nil && s.vm.dead == nil {
		err = s.tellEnd()
		s.vm.settle()
	}
	s.wasCut = s.wasCut || !s.localReady && reason != EndNormal
	s.worker.open--
	if s.root != nil {
		delete(s.vm.contexts, s.id)
		s.root.streams--
		s.vm.retireRoot(s.root)
		s.worker.reap()
	}
	s.wakeUp()
	return err
}

// tellEnd runs log, done and delete. What done answers does not matter for a stream. Source: Envoy, Context::log and
// Context::onDestroy.
func (s *Stream) tellEnd() error {
	v := s.vm
	s.ending = true
	for _, e := range []*export{v.log, v.done, v.remove} {
		if e == nil {
			continue
		}
		s.logging = e == v.log
		_, err := v.callback(&s.guestContext, e, uint64(s.id))
		s.logging = false
		if err != nil {
			return err
		}
	}
	return nil
}

// noteEnd answers the properties about the end.
func (s *Stream) noteEnd(reason EndReason) {
	details, flags := "via_upstream", int64(0)
	switch {
	case reason == EndClientGone:
		details, flags = "downstream_remote_disconnect", flagClientGone
	case reason == EndTimeout:
		details, flags = "response_timeout", flagTimeout
	case reason == EndUpstreamReset && s.response.hasHeaders:
		details, flags = "upstream_reset_after_response_started{protocol_error}", flagBrokenOff
	case reason == EndUpstreamReset:
		details, flags = "upstream_reset_before_response_started{connection_termination}", flagTerminated
	case s.local != nil:
		details = s.local.Details
	case s.details != "":
		details = s.details
	}
	s.defaultProperty("response\x00code_details", []byte(details))
	s.defaultProperty("response\x00flags", PropertyInt(flags))
}

func (s *Stream) defaultProperty(path string, value []byte) {
	if _, ok := s.properties[path]; !ok {
		s.setProperty(path, value)
	}
}
