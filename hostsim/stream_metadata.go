package hostsim

// RequestMetadata delivers a METADATA frame of HTTP/2, after the request's headers and before its end. The plugin hears the
// number of pairs and can neither read nor hold them: no header map has them, and its answer does not count. While the
// stream stands still, the frame waits with the body. Envoy passes these frames only where its HTTP/2 options say
// allow_metadata. Errors as for RequestHeaders. Source: Envoy, Context::decodeMetadata; seen on
// Envoy 1.40.0.
func (s *Stream) RequestMetadata(h Headers) (Step, error) {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	return s.metadata(&s.request, len(h))
}

// ResponseMetadata is RequestMetadata for the response.
func (s *Stream) ResponseMetadata(h Headers) (Step, error) {
	s.worker.mu.Lock()
	defer s.worker.mu.Unlock()
	return s.metadata(&s.response, len(h))
}

func (s *Stream) metadata(d *half, pairs int) (Step, error) {
	return s.step(d, d.hasHeaders && !d.complete, func() error {
		if d.state == stoppedAll {
			d.heldMetadata = append(d.heldMetadata, pairs)
			return nil
		}
		return d.deliverMetadata(pairs)
	})
}

// deliverMetadata shows a frame to the plugin.
func (d *half) deliverMetadata(pairs int) error {
	v := d.stream.vm
	if v == nil {
		return nil
	}
	e := v.requestMetadata
	if d.reverse {
		e = v.responseMetadata
	}
	_, err := d.call(e, pairs, false, false)
	return err
}

// resumeMetadata shows the frames that have waited.
func (d *half) resumeMetadata() error {
	held := d.heldMetadata
	d.heldMetadata = nil
	for _, pairs := range held {
		if err := d.deliverMetadata(pairs); err != nil {
			return err
		}
	}
	return nil
}
