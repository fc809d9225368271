package hostsim

// Flow says what the gateway does next with a stream.
type Flow uint8

const (
	// Forward: pass on what the Step carries and go on.
	Forward Flow = iota
	// Wait: the plugin has paused this direction. Pass on nothing of it until a later Step or Stream.Wake.
	Wait
	// Reply: the stream is answered by the plugin or the host: send Stream.LocalReply to the client, call neither the
	// upstream nor further steps, then End.
	Reply
	// Reset: the stream is cut. Close it on both sides, then End.
	Reset
)

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

// LocalReply is a response that did not come from upstream.
type LocalReply struct {
	// Status is the HTTP status code.
	Status int
	// Headers is what the client sees, :status included, after the plugin's own response callbacks.
	Headers Headers
	// Body is what the client sees.
	Body []byte
	// Details says who answered and why, as in Envoy's response code details.
	Details string
	// GRPCStatus is the gRPC status that the plugin gave, or -1.
	GRPCStatus int32
}

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

// Stream is one HTTP request and its response on one worker. A caller hands it the parts of the request, then those of
// the response, each in order; headers once, body in chunks of any number, trailers at most once; and ends it exactly
// once. Every part must carry end of stream exactly once per direction, or trailers.
type Stream struct{}

// RequestHeaders delivers the request's headers, of which the stream takes a copy with lower-case names. endOfStream says
// that no body follows. The error wraps ErrTrap when the plugin crashed (the Step then says what the failure policy
// makes of it), or is ErrStreamEnded or ErrOrder.
func (s *Stream) RequestHeaders(h Headers, endOfStream bool) (Step, error) { panic("todo") }

// RequestBody delivers a chunk, which the caller may reuse afterwards. Errors as for RequestHeaders.
func (s *Stream) RequestBody(chunk []byte, endOfStream bool) (Step, error) { panic("todo") }

// RequestTrailers delivers the trailers and ends the request. Errors as for RequestHeaders.
func (s *Stream) RequestTrailers(h Headers) (Step, error) { panic("todo") }

// ResponseHeaders delivers the upstream's response headers, :status among them. Errors as for RequestHeaders.
func (s *Stream) ResponseHeaders(h Headers, endOfStream bool) (Step, error) { panic("todo") }

// ResponseBody delivers a chunk of the response. Errors as for RequestHeaders.
func (s *Stream) ResponseBody(chunk []byte, endOfStream bool) (Step, error) { panic("todo") }

// ResponseTrailers delivers the trailers and ends the response. Errors as for RequestHeaders.
func (s *Stream) ResponseTrailers(h Headers) (Step, error) { panic("todo") }

// End ends the stream: log, done and delete, exactly once however often it is called, also when no headers ever came.
// The error wraps ErrTrap when the plugin crashed in it.
func (s *Stream) End(reason EndReason) error { panic("todo") }

// Wake receives a value when something outside the caller's own steps has moved a waiting stream: the plugin resumed,
// answered or cut it from a tick or from another stream. Then call RequestReady and ResponseReady.
func (s *Stream) Wake() <-chan struct{} { panic("todo") }

// RequestReady returns what has become free to go upstream since the last step.
func (s *Stream) RequestReady() Step { panic("todo") }

// ResponseReady returns what has become free to go to the client since the last step.
func (s *Stream) ResponseReady() Step { panic("todo") }

// Headers returns a copy of a header map as it stands, with the plugin's changes; nil when it has not arrived.
func (s *Stream) Headers(kind MapKind) Headers { panic("todo") }

// LocalReply returns the stream's local reply, or nil.
func (s *Stream) LocalReply() *LocalReply { panic("todo") }

// SetProperty answers the plugin's proxy_get_property for path (see Path) with value, as bytes on the wire: text as it
// is, numbers by PropertyInt.
func (s *Stream) SetProperty(path string, value []byte) { panic("todo") }

// FilterState returns what the plugin stored by proxy_set_property under name, which is "wasm." and the plugin's path.
func (s *Stream) FilterState(name string) ([]byte, bool) { panic("todo") }

// ID is the context id by which the plugin knows the stream, or 0 before its first callback.
func (s *Stream) ID() uint32 { panic("todo") }

// Worker is the worker that serves the stream.
func (s *Stream) Worker() *Worker { panic("todo") }
