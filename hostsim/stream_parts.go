package hostsim

// RequestHeaders delivers the request's headers, of which the stream takes a copy with lower-case names. endOfStream says
// that no body follows. The error wraps ErrTrap when the plugin crashed in this call (the Step then says what the client
// gets), or is ErrStreamEnded or ErrOrder.
func (s *Stream) RequestHeaders(h Headers, endOfStream bool) (Step, error) {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	return s.headers(&s.request, h, endOfStream)
}

// RequestBody delivers a chunk, which the caller may reuse afterwards. Errors as for RequestHeaders.
func (s *Stream) RequestBody(chunk []byte, endOfStream bool) (Step, error) {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	return s.body(&s.request, chunk, endOfStream)
}

// RequestTrailers delivers the trailers and ends the request. Errors as for RequestHeaders.
func (s *Stream) RequestTrailers(h Headers) (Step, error) {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	return s.trailers(&s.request, h)
}

// ResponseHeaders delivers the upstream's response headers, :status among them. Errors as for RequestHeaders.
func (s *Stream) ResponseHeaders(h Headers, endOfStream bool) (Step, error) {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	return s.headers(&s.response, h, endOfStream)
}

// ResponseBody delivers a chunk of the response. Errors as for RequestHeaders.
func (s *Stream) ResponseBody(chunk []byte, endOfStream bool) (Step, error) {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	return s.body(&s.response, chunk, endOfStream)
}

// ResponseTrailers delivers the trailers and ends the response. Errors as for RequestHeaders.
func (s *Stream) ResponseTrailers(h Headers) (Step, error) {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	return s.trailers(&s.response, h)
}

func (s *Stream) headers(d *half, h Headers, end bool) (Step, error) {
	s.recordMap(d, partHeaders, h, end)
	inOrder := !d.hasHeaders && !d.complete && (!d.reverse || s.request.hasHeaders)
	return s.step(d, inOrder, func() error {
		d.headers, d.hasHeaders = d.kind().normal(h), true
		return d.deliverHeaders(end)
	})
}

func (s *Stream) body(d *half, chunk []byte, end bool) (Step, error) {
	s.recordBody(d, chunk, end)
	return s.step(d, d.hasHeaders && !d.complete, func() error { return d.deliverData(chunk, end) })
}

func (s *Stream) trailers(d *half, h Headers) (Step, error) {
	s.recordMap(d, partTrailers, h, true)
	return s.step(d, d.hasHeaders && !d.complete, func() error {
		d.trailers, d.hasTrailers = h.lowered(), true
		return d.deliverTrailers()
	})
}
