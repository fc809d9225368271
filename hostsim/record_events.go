package hostsim

import "strconv"

// Events are what reaches a host from outside: parts of messages, ends of streams, ticks, answers to call-outs, changes of
// the configuration. Check has no use for them, because what the module saw of them stands in its callbacks and host calls.
// They say why those happened, and let a driver send the same traffic to another plugin.

// event begins an event's line on a thread.
func (w *Worker) event(name string) []byte {
	b := append([]byte(`{"kind":"event","name":"`), name...)
	b = strconv.AppendInt(append(b, `","worker":`...), int64(w.index), 10)
	return strconv.AppendInt(append(b, `,"mono":`...), int64(w.host.clock.Monotonic()), 10)
}

// event begins the line of something that happens to the stream.
func (s *Stream) event(name string) []byte {
	return strconv.AppendUint(append(s.worker.event(name), `,"stream":`...), s.number, 10)
}

func (w *Worker) putEvent(b []byte) { w.host.config.Recorder.put(append(b, '}'), 0, 0) }

func (w *Worker) recording() *Recorder { return w.host.config.Recorder }

// nextStream numbers streams, from 1 in each recording.
func (r *Recorder) nextStream() uint64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.streams++
	return r.streams
}

// partNames are the events of a request and of a response.
var partNames = [2][3]string{
	{"request_headers", "request_body", "request_trailers"},
	{"response_headers", "response_body", "response_trailers"},
}

const (
	partHeaders = iota
	partBody
	partTrailers
)

func (d *half) partName(part int) string {
	if d.reverse {
		return partNames[1][part]
	}
	return partNames[0][part]
}

// recordMap writes the arrival of headers or trailers.
func (s *Stream) recordMap(d *half, part int, h Headers, end bool) {
	if r := s.worker.recording(); r != nil {
		b := append(s.event(d.partName(part)), `,"headers":`...)
		b = appendHeaders(b, r.redaction.headers(h))
		s.worker.putEvent(strconv.AppendBool(append(b, `,"end_of_stream":`...), end))
	}
}

// recordBody writes the arrival of a chunk.
func (s *Stream) recordBody(d *half, chunk []byte, end bool) {
	if r := s.worker.recording(); r != nil {
		b := append(s.event(d.partName(partBody)), `,"data":`...)
		b = appendText(b, r.redaction.text(chunk))
		s.worker.putEvent(strconv.AppendBool(append(b, `,"end_of_stream":`...), end))
	}
}

// recordEnd writes the end of the stream.
func (s *Stream) recordEnd(reason EndReason) {
	if s.worker.recording() != nil {
		b := append(s.event("end"), `,"reason":"`...)
		s.worker.putEvent(append(append(b, endNames[reason%EndReason(len(endNames))]...), '"'))
	}
}

var endNames = [...]string{EndNormal: "normal", EndClientGone: "client_gone", EndUpstreamReset: "upstream_reset", EndTimeout: "timeout"}

// recordProperty writes that the caller sets a property, or with nil takes it back.
func (s *Stream) recordProperty(path string, value []byte) {
	r := s.worker.recording()
	if r == nil {
		return
	}
	b := appendText(append(s.event("property"), `,"path":`...), path)
	if value != nil {
		b = appendText(append(b, `,"value":`...), r.redaction.text(value))
	}
	s.worker.putEvent(b)
}

// recordDue writes that something falls due: a tick, a message in a queue, something of a gRPC call. The callback that
// follows says the rest.
func (w *Worker) recordDue(name string) {
	if w.recording() != nil {
		w.putEvent(w.event(name))
	}
}

// recordAnswer writes the answer to a call-out, without headers where the call was reset.
func (w *Worker) recordAnswer(c *HTTPCall, answer *HTTPResponse) {
	r := w.recording()
	if r == nil {
		return
	}
	b := strconv.AppendUint(append(w.event("http_call_response"), `,"call":`...), uint64(c.id), 10)
	b = appendHeaders(append(b, `,"headers":`...), r.redaction.headers(answer.Headers))
	b = appendText(append(b, `,"data":`...), r.redaction.text(answer.Body))
	w.putEvent(appendHeaders(append(b, `,"trailers":`...), r.redaction.headers(answer.Trailers)))
}

// recordConfig writes that the plugin configuration is replaced.
func (h *Host) recordConfig(pluginConfig []byte) {
	if r := h.config.Recorder; r != nil {
		h.main.putEvent(appendText(append(h.main.event("reconfigure"), `,"plugin_config":`...), r.redaction.text(pluginConfig)))
	}
}

// recordDrain writes that the drain time of earlier configurations ends.
func (h *Host) recordDrain() {
	if h.config.Recorder != nil {
		h.main.putEvent(h.main.event("drain"))
	}
}

// event begins the line of something that happens to the connection.
func (c *Connection) event(name string) []byte {
	return strconv.AppendUint(append(c.worker.event(name), `,"connection":`...), c.number, 10)
}

// recordData writes the arrival of bytes from the client or from upstream.
func (c *Connection) recordData(d *connHalf, chunk []byte, end bool) {
	r := c.worker.recording()
	if r == nil {
		return
	}
	name := "downstream_data"
	if d == &c.up {
		name = "upstream_data"
	}
	b := appendText(append(c.event(name), `,"data":`...), r.redaction.text(chunk))
	c.worker.putEvent(strconv.AppendBool(append(b, `,"end_of_stream":`...), end))
}

// recordClose writes the end of the connection.
func (c *Connection) recordClose(by CloseType) {
	if c.worker.recording() != nil {
		c.worker.putEvent(strconv.AppendUint(append(c.event("close"), `,"by":`...), uint64(by), 10))
	}
}
