package hostsim

import (
	"slices"
	"strconv"
	"sync"
	"time"
)

// GRPCCall is a gRPC call that the plugin itself makes to an upstream cluster: a unary one (proxy_grpc_call) or a stream
// (proxy_grpc_stream). Its fields are the caller's to read; only Respond is safe for concurrent use.
type GRPCCall struct {
	// Worker is the number of the calling worker, or MainThread, or Canary. A canary never hears an answer.
	Worker int
	// Cluster is the cluster's name, or the target URI where the plugin asked for a google_grpc service.
	Cluster string
	// Service and Method name what is called, such as "grpc.health.v1.Health" and "Check".
	Service, Method string
	// Metadata is the initial metadata, with names in lower case.
	Metadata Headers
	// Stream is true for a stream.
	Stream bool
	// Request is the message of a unary call, without its length prefix.
	Request []byte
	// Timeout is when the host gives up waiting for a unary call, from the call on. Zero means never.
	Timeout time.Duration
	// OnSend hears each message that the plugin sends on a stream; end says that it is the last. The function of
	// Config.GRPCCall may set it. It runs while the caller's worker is held.
	OnSend func(message []byte, end bool)
	// OnClose hears how the plugin has ended the call: it has closed its side of a stream (cancelled is false), or thrown
	// the call away, itself or by its own end. It is set and runs as OnSend does.
	OnClose func(cancelled bool)

	host        *Host
	id          uint32
	deadline    time.Duration // monotonic; 0 for none
	sentEnd     bool          // the plugin has sent its last message or closed its side
	localClosed bool          // the plugin has closed its side by grpc_close; an end sent with a message does not count
	remoteEnded bool

	mu      sync.Mutex
	begun   bool // the first answer has come
	ended   bool // the last answer has come
	pending []*grpcEvent
}

// GRPCResponse is what upstream answers to a GRPCCall, or a part of that.
type GRPCResponse struct {
	// Metadata is the initial metadata, only in the first answer on a stream. :status and content-type are added where they
	// are missing. A plugin is not told that of a unary call.
	Metadata Headers
	// Messages are the answer's messages, without length prefixes. A unary call takes the first, and without one fails with
	// status 13. They are the host's from Respond on.
	Messages [][]byte
	// Open leaves a stream open: more answers follow, and what is below does not count yet.
	Open bool
	// Trailers is the trailing metadata, only told of a stream. grpc-status and grpc-message are added where they are
	// missing.
	Trailers Headers
	// Status is the gRPC status, 0 to 16, and StatusMessage its message.
	Status        uint32
	StatusMessage string
	// Reset means that upstream broke off: status 14 before the first answer, 13 after it.
	Reset bool
	// After is the time on the host's clock that the answer takes, from Respond on. Answers of one call never overtake each
	// other.
	After time.Duration
}

type grpcEventKind uint8

const (
	grpcInitial grpcEventKind = iota
	grpcMessage
	grpcTrailing
	grpcClosed
)

// grpcEvent is one callback about a gRPC call.
type grpcEvent struct {
	kind    grpcEventKind
	at      time.Duration // monotonic
	headers Headers
	message []byte
	status  uint32
	text    string

	timedOut bool
}

func (e *grpcEvent) open() bool          { return true }
func (e *grpcEvent) setView(data []byte) { e.message = data }

// Respond answers the call. The plugin hears of it as of a tick: in Host.Advance or Host.RunTicks, at the answer's time on
// the host's clock, unless the call has timed out or been cancelled, or its plugin context or virtual machine is gone by
// then. A unary call takes one answer, a stream as many as are Open and one that is not; further ones do not count. It may
// be called from any goroutine, also while the call is being made.
func (c *GRPCCall) Respond(r GRPCResponse) {
	at := c.host.clock.Monotonic() + max(r.After, 0)
	c.mu.Lock()
	if c.ended {
		c.mu.Unlock()
		return
	}
	events := c.events(&r)
	for _, e := range events {
		e.at = at
	}
	c.pending = append(c.pending, events...)
	c.begun, c.ended = true, !r.Open || r.Reset
	c.mu.Unlock()
	c.host.wakeTicker()
}

// events are the callbacks of an answer. An answer without any message comes as trailers alone, with empty initial metadata;
// a unary call tells of its message or of its failure. Source: Envoy, source/common/grpc/async_client_impl.cc; texts as seen
// on Envoy 1.36.4 and 1.40.0.
func (c *GRPCCall) events(r *GRPCResponse) []*grpcEvent {
	switch {
	case r.Reset && c.begun:
		const text = "upstream_reset_after_response_started{remote_reset}"
		return []*grpcEvent{{kind: grpcTrailing}, {kind: grpcClosed, status: grpcStatusInternal, text: text}}
	case r.Reset:
		*r = GRPCResponse{Status: grpcStatusUnavailable, StatusMessage: resetMessage}
	}
	closed := &grpcEvent{kind: grpcClosed, status: r.Status, text: detailed(r.StatusMessage, "via_upstream")}
	if r.StatusMessage == resetMessage {
		closed.text = detailed(r.StatusMessage, "upstream_reset_before_response_started{remote_reset}")
	}
	if !c.Stream {
		switch {
		case closed.status == 0 && len(r.Messages) > 0:
			return []*grpcEvent{{kind: grpcMessage, message: r.Messages[0]}}
		case closed.status == 0:
			closed.status, closed.text = grpcStatusInternal, ""
		}
		return []*grpcEvent{closed}
	}
	trailers := r.Trailers.lowered()
	trailers.addMissing("grpc-status", strconv.Itoa(int(r.Status)))
	if r.StatusMessage != "" {
		trailers.addMissing("grpc-message", r.StatusMessage)
	}
	metadata := r.Metadata.lowered()
	metadata.addMissing(":status", "200")
	metadata.addMissing("content-type", "application/grpc")
	if alone := !c.begun && !r.Open && len(r.Messages) == 0 && r.Metadata == nil; alone {
		metadata, trailers = nil, slices.Concat(metadata, trailers)
	}
	var out []*grpcEvent
	if !c.begun {
		out = append(out, &grpcEvent{kind: grpcInitial, headers: metadata})
	}
	for _, m := range r.Messages {
		out = append(out, &grpcEvent{kind: grpcMessage, message: m})
	}
	if !r.Open {
		out = append(out, &grpcEvent{kind: grpcTrailing, headers: trailers}, closed)
	}
	return out
}

// detailed is how Envoy joins a status message and its own response code details.
func detailed(message, details string) string {
	if message == "" {
		return details
	}
	return message + "{" + details + "}"
}

// resetMessage is what Envoy says for an upstream that broke off before it answered.
const resetMessage = "upstream connect error or disconnect/reset before headers. reset reason: remote reset"

func (h *Headers) addMissing(name, value string) {
	if _, ok := h.Get(name); !ok {
		h.Add(name, value)
	}
}

// gRPC statuses that the host itself gives.
const (
	grpcStatusInternal    = 13
	grpcStatusUnavailable = 14
)

// due is what the plugin will hear next of the call, as things stand, or nil. The deadline counts as an answer of upstream.
func (c *GRPCCall) due() *grpcEvent {
	c.mu.Lock()
	defer c.mu.Unlock()
	var e *grpcEvent
	if len(c.pending) > 0 {
		e = c.pending[0]
	}
	if c.deadline != 0 && (e == nil || e.at > c.deadline) {
		return &grpcEvent{kind: grpcClosed, at: c.deadline, status: grpcStatusUnavailable, text: "upstream request timeout{response_timeout}", timedOut: true}
	}
	return e
}

func (c *GRPCCall) take(e *grpcEvent) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) > 0 && c.pending[0] == e {
		c.pending = c.pending[1:]
	}
}

func (c *GRPCCall) backlog() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.pending)
}

// drop throws the call away. The plugin hears no more of it.
func (c *GRPCCall) drop() {
	if c.OnClose != nil && !c.remoteEnded {
		c.OnClose(true)
	}
}
