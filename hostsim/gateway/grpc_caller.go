package gateway

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// GRPC carries out the plugin's own gRPC calls: it is made for hostsim.Config.GRPCCall, as Call is for HTTP. It speaks
// HTTP/2 without TLS to the cluster's hosts, whatever Cluster.HTTP2 says. Messages are neither compressed nor larger than
// 32 MiB; another answer is a status 13. Source: gRPC over HTTP2, in the repository of grpc/grpc.
func (c *Caller) GRPC(call *hostsim.GRPCCall) bool {
	cluster := c.clusters[call.Cluster]
	if cluster == nil {
		return false
	}
	ctx, cancel := context.WithCancel(c.ctx)
	body := &frames{ctx: ctx, wake: make(chan struct{}, 1)}
	if call.Stream {
		call.OnSend = body.send
	} else {
		body.send(call.Request, true)
	}
	call.OnClose = func(cancelled bool) {
		if cancelled {
			cancel()
		} else {
			body.end()
		}
	}
	go func() {
		defer cancel()
		call.Respond(c.callGRPC(ctx, cluster, call, body))
	}()
	return true
}

// callGRPC returns the last answer of a call; those of a stream before it are given on the way.
func (c *Caller) callGRPC(ctx context.Context, cluster *cluster, call *hostsim.GRPCCall, body *frames) hostsim.GRPCResponse {
	headers := hostsim.Headers{{":method", "POST"}, {":path", "/" + call.Service + "/" + call.Method}, {":authority", cluster.name},
		{"content-type", "application/grpc"}}
	failure := grpcFailure(grpcUnavailable, errNoHost.Error())
	for _, host := range cluster.attempts("", len(cluster.hosts)) {
		request, err := upstreamRequest(ctx, host, append(headers, call.Metadata...), "")
		if err != nil {
			return grpcFailure(grpcInternal, err.Error())
		}
		request.Header["Te"] = []string{"trailers"}
		request.Body, request.ContentLength = body, -1
		resp, err := c.http2.RoundTrip(request)
		if err == nil {
			defer resp.Body.Close()
			return readGRPC(call, resp)
		}
		if connect := (*connectError)(nil); !errors.As(err, &connect) {
			return hostsim.GRPCResponse{Reset: true}
		}
		failure = grpcFailure(grpcUnavailable, errConnect.Error())
	}
	return failure
}

// gRPC statuses that the gateway itself gives.
const (
	grpcUnknown     = 2
	grpcInternal    = 13
	grpcUnavailable = 14
)

func grpcFailure(status uint32, message string) hostsim.GRPCResponse {
	return hostsim.GRPCResponse{Status: status, StatusMessage: message}
}

// readGRPC reads the answer: messages, and the status in the trailers, or in the headers where there is nothing else.
func readGRPC(call *hostsim.GRPCCall, resp *http.Response) hostsim.GRPCResponse {
	if resp.StatusCode != http.StatusOK {
		return grpcFailure(grpcStatusOf(resp.StatusCode), "upstream answered "+resp.Status)
	}
	metadata := responseHeaders(resp)
	if call.Stream && resp.Header.Get("grpc-status") == "" {
		call.Respond(hostsim.GRPCResponse{Metadata: metadata, Open: true})
	}
	var messages [][]byte
	for {
		message, err := readFrame(resp.Body)
		switch {
		case errors.Is(err, io.EOF):
			return lastAnswer(resp, metadata, messages)
		case errors.Is(err, errFrame):
			return grpcFailure(grpcInternal, err.Error())
		case err != nil:
			return hostsim.GRPCResponse{Reset: true}
		case call.Stream:
			call.Respond(hostsim.GRPCResponse{Messages: [][]byte{message}, Open: true})
		default:
			messages = append(messages, message)
		}
	}
}

func lastAnswer(resp *http.Response, metadata hostsim.Headers, messages [][]byte) hostsim.GRPCResponse {
	trailers := toHeaders(nil, resp.Trailer)
	from := trailers
	if _, ok := from.Get("grpc-status"); !ok {
		from = metadata
	}
	r := hostsim.GRPCResponse{Messages: messages, Trailers: trailers, Status: grpcUnknown, StatusMessage: from.Value("grpc-message")}
	if n, err := strconv.ParseUint(from.Value("grpc-status"), 10, 32); err == nil {
		r.Status = uint32(n)
	}
	return r
}

// grpcStatusOf is what stands for an HTTP status. Source: grpc/grpc, doc/http-grpc-status-mapping.md.
func grpcStatusOf(code int) uint32 {
	switch code {
	case http.StatusBadRequest:
		return grpcInternal
	case http.StatusUnauthorized:
		return 16
	case http.StatusForbidden:
		return 7
	case http.StatusNotFound:
		return 12
	case http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return grpcUnavailable
	}
	return grpcUnknown
}

var errFrame = errors.New("not a gRPC message")

// frameHeader is the size of what precedes each message: a flag for compression, and the length.
const frameHeader = 5

func readFrame(from io.Reader) ([]byte, error) {
	var header [frameHeader]byte
	if _, err := io.ReadFull(from, header[:]); err != nil {
		return nil, err
	}
	size := binary.BigEndian.Uint32(header[1:])
	if header[0] != 0 || size > callLimit {
		return nil, fmt.Errorf("%w: compression flag %d, %d bytes (0 and up to %d are taken)", errFrame, header[0], size, callLimit)
	}
	var message bytes.Buffer // grows with what comes, not with what is announced
	if n, err := io.CopyN(&message, from, int64(size)); err != nil {
		return nil, fmt.Errorf("a message of %d bytes ends after %d: %w", size, n, io.ErrUnexpectedEOF)
	}
	return message.Bytes(), nil
}

// frames is the request's body: messages as the plugin sends them. Sending never waits, for the plugin's worker is held
// meanwhile.
type frames struct {
	ctx  context.Context
	wake chan struct{}

	mu    sync.Mutex
	ready []byte
	ended bool
}

func (f *frames) send(message []byte, end bool) {
	f.mu.Lock()
	f.ready = append(f.ready, 0)
	f.ready = binary.BigEndian.AppendUint32(f.ready, uint32(len(message)))
	f.ready = append(f.ready, message...)
	f.ended = f.ended || end
	f.mu.Unlock()
	f.tell()
}

func (f *frames) end() {
	f.mu.Lock()
	f.ended = true
	f.mu.Unlock()
	f.tell()
}

func (f *frames) tell() {
	select {
	case f.wake <- struct{}{}:
	default:
	}
}

func (f *frames) Read(p []byte) (int, error) {
	for {
		f.mu.Lock()
		n, ended := copy(p, f.ready), f.ended
		f.ready = f.ready[n:]
		f.mu.Unlock()
		switch {
		case n > 0:
			return n, nil
		case ended:
			return 0, io.EOF
		}
		select {
		case <-f.wake:
		case <-f.ctx.Done():
			return 0, f.ctx.Err()
		}
	}
}

// Close does nothing: after a failed connection the next attempt reads on, for nothing has been read yet.
func (f *frames) Close() error { return nil }
