// Package exchange delivers a request and its response to a stream part by part and collects what goes on: what upstream
// gets, what the client gets, and how the exchange ends. Tests and suites drive streams through it.
package exchange

import (
	"errors"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// Direction is one of a stream's two messages.
type Direction uint8

const (
	Request Direction = iota
	Response
)

// Message is what has become of one direction so far.
type Message struct {
	// Sent is the headers as they were delivered to the stream, nil before that.
	Sent hostsim.Headers
	// Headers is what has gone on, with the plugin's changes; nil while nothing has.
	Headers hostsim.Headers
	// Body is what has gone on.
	Body []byte
	// Trailers is what has gone on; nil where there are none.
	Trailers hostsim.Headers
	// Complete is true when the whole message has gone on.
	Complete bool
	// Paused is true while the plugin holds this direction back.
	Paused bool
}

// Exchange is one stream on its way. It is not safe for concurrent use.
type Exchange struct {
	// Messages has what went on, by Direction.
	Messages [2]Message
	// Local is the local reply, or nil while there is none. It takes the place of the response.
	Local *hostsim.LocalReply
	// Reset is true when the stream was cut.
	Reset bool
	// Err is the first error of a step, such as the plugin's crash.
	Err error

	stream *hostsim.Stream
	ended  bool
}

// New returns an exchange on a stream that has not begun.
func New(s *hostsim.Stream) *Exchange { return &Exchange{stream: s} }

// Stream is the stream that the exchange drives.
func (x *Exchange) Stream() *hostsim.Stream { return x.stream }

// Over is true when no further part can be delivered.
func (x *Exchange) Over() bool { return x.Local != nil || x.Reset || x.Err != nil || x.ended }

// Paused is true while the plugin holds either direction back.
func (x *Exchange) Paused() bool {
	return !x.Over() && (x.Messages[Request].Paused || x.Messages[Response].Paused)
}

// Headers delivers the headers of d; end says that no body follows.
func (x *Exchange) Headers(d Direction, h hostsim.Headers, end bool) hostsim.Flow {
	x.Messages[d].Sent = h.Clone()
	send := x.stream.RequestHeaders
	if d == Response {
		send = x.stream.ResponseHeaders
	}
	return x.note(d, func() (hostsim.Step, error) { return send(h, end) })
}

// Body delivers a chunk of d.
func (x *Exchange) Body(d Direction, chunk []byte, end bool) hostsim.Flow {
	send := x.stream.RequestBody
	if d == Response {
		send = x.stream.ResponseBody
	}
	return x.note(d, func() (hostsim.Step, error) { return send(chunk, end) })
}

// Trailers delivers the trailers of d, which end it.
func (x *Exchange) Trailers(d Direction, h hostsim.Headers) hostsim.Flow {
	send := x.stream.RequestTrailers
	if d == Response {
		send = x.stream.ResponseTrailers
	}
	return x.note(d, func() (hostsim.Step, error) { return send(h) })
}

// Poll collects what has become free since the last part: after time has passed, or after another stream's step.
func (x *Exchange) Poll() {
	if x.ended {
		return
	}
	x.take(Request, x.stream.RequestReady())
	x.take(Response, x.stream.ResponseReady())
}

// End ends the stream, once.
func (x *Exchange) End(reason hostsim.EndReason) {
	if !x.ended {
		x.ended = true
		x.fail(x.stream.End(reason))
	}
}

// note runs one step and collects what it lets through, in both directions.
func (x *Exchange) note(d Direction, step func() (hostsim.Step, error)) hostsim.Flow {
	st, err := step()
	x.fail(err)
	if !errors.Is(err, hostsim.ErrOrder) && !errors.Is(err, hostsim.ErrStreamEnded) {
		x.take(d, st)
		x.Poll()
	}
	return st.Flow
}

func (x *Exchange) fail(err error) {
	if x.Err == nil {
		x.Err = err
	}
}

func (x *Exchange) take(d Direction, st hostsim.Step) {
	m := &x.Messages[d]
	m.Paused = st.Flow == hostsim.Wait
	switch st.Flow {
	case hostsim.Reset:
		x.Reset = true
		return
	case hostsim.Reply:
		x.Local = x.stream.LocalReply()
		return
	}
	headers, trailers := hostsim.MapRequestHeaders, hostsim.MapRequestTrailers
	if d == Response {
		headers, trailers = hostsim.MapResponseHeaders, hostsim.MapResponseTrailers
	}
	if st.Headers {
		m.Headers = x.stream.Headers(headers)
	}
	m.Body = append(m.Body, st.Data...)
	if st.End {
		m.Complete, m.Trailers = true, x.stream.Headers(trailers)
	}
}
