package main

import (
	"errors"
	"fmt"

	core "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc/mem"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// question is what matters of a ProcessingRequest.
type question struct {
	headers bool   // of a request; else it is another message
	session []byte // empty if there is no such header
}

// answer is an encoded ProcessingResponse, which nobody changes.
type answer []byte

// newAnswer sets the target header and does nothing else.
func newAnswer(to string) answer {
	set := &core.HeaderValueOption{
		Header:       &core.HeaderValue{Key: target, RawValue: []byte(to)},
		AppendAction: core.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
	b, err := proto.Marshal(&extproc.ProcessingResponse{Response: &extproc.ProcessingResponse_RequestHeaders{
		RequestHeaders: &extproc.HeadersResponse{Response: &extproc.CommonResponse{
			HeaderMutation: &extproc.HeaderMutation{SetHeaders: []*core.HeaderValueOption{set}},
		}},
	}})
	if err != nil {
		panic(err) // only a string that is not UTF-8 has no encoding
	}
	return b
}

// codec moves questions and answers, in place of the one for generated types. It reads the first header of that name.
type codec struct{ header string }

func (codec) Name() string { return "proto" }

// Marshal takes an answer.
func (codec) Marshal(v any) (mem.BufferSlice, error) {
	a, ok := v.(answer)
	if !ok {
		return nil, fmt.Errorf("extproc: no answer: %T", v)
	}
	return mem.BufferSlice{mem.SliceBuffer(a)}, nil
}

// Unmarshal fills a *question. Its session is a copy: the bytes are grpc's.
func (c codec) Unmarshal(data mem.BufferSlice, v any) error {
	q, ok := v.(*question)
	if !ok {
		return fmt.Errorf("extproc: no question: %T", v)
	}
	whole := data.MaterializeToBuffer(mem.DefaultBufferPool())
	defer whole.Free()
	q.headers, q.session = false, q.session[:0]
	message, err := field(whole.ReadOnlyData(), 2) // ProcessingRequest.request_headers
	if err != nil || message == nil {
		return err
	}
	q.headers = true
	all, err := field(message, 1) // HttpHeaders.headers
	if err != nil {
		return err
	}
	for len(all) > 0 {
		header, rest, err := next(all, 1) // HeaderMap.headers
		if err != nil {
			return err
		}
		all = rest
		if name, err := field(header, 1); err != nil { // HeaderValue.key
			return err
		} else if string(name) != c.header {
			continue
		}
		value, err := field(header, 3) // HeaderValue.raw_value
		if err == nil && value == nil {
			value, err = field(header, 2) // HeaderValue.value, of an Envoy that was told so
		}
		q.session = append(q.session, value...)
		return err
	}
	return nil
}

var errWire = errors.New("extproc: malformed message")

// field is the first bytes or message of that number in a message, nil if there is none.
func field(message []byte, number protowire.Number) ([]byte, error) {
	value, _, err := next(message, number)
	return value, err
}

// next is field, and what follows it.
func next(message []byte, number protowire.Number) (value, rest []byte, err error) {
	for len(message) > 0 {
		at, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return nil, nil, errWire
		}
		size := protowire.ConsumeFieldValue(at, kind, message[n:])
		if size < 0 {
			return nil, nil, errWire
		}
		if at == number && kind == protowire.BytesType {
			value, _ = protowire.ConsumeBytes(message[n:])
			return value, message[n+size:], nil
		}
		message = message[n+size:]
	}
	return nil, nil, nil
}
