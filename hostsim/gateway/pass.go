package gateway

import (
	"bytes"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// filter is the plugin's part in one exchange: a *hostsim.Stream, or passing.
type filter interface {
	SetProperty(path string, value []byte)
	RequestHeaders(h hostsim.Headers, endOfStream bool) (hostsim.Step, error)
	RequestBody(chunk []byte, endOfStream bool) (hostsim.Step, error)
	RequestTrailers(h hostsim.Headers) (hostsim.Step, error)
	RequestReady() hostsim.Step
	ResponseHeaders(h hostsim.Headers, endOfStream bool) (hostsim.Step, error)
	ResponseBody(chunk []byte, endOfStream bool) (hostsim.Step, error)
	ResponseTrailers(h hostsim.Headers) (hostsim.Step, error)
	ResponseReady() hostsim.Step
	Headers(kind hostsim.MapKind) hostsim.Headers
	LocalReply() *hostsim.LocalReply
	Wake() <-chan struct{}
	End(reason hostsim.EndReason) error
}

// passing lets everything through as it comes.
type passing struct {
	maps [hostsim.MapResponseTrailers + 1]hostsim.Headers
}

func (p *passing) SetProperty(string, []byte) {}

func (p *passing) RequestHeaders(h hostsim.Headers, end bool) (hostsim.Step, error) {
	p.maps[hostsim.MapRequestHeaders] = h
	return hostsim.Step{Headers: true, End: end}, nil
}

// RequestBody copies the chunk, for the caller of a filter may use it again while the result is on its way.
func (p *passing) RequestBody(chunk []byte, end bool) (hostsim.Step, error) {
	return hostsim.Step{Data: bytes.Clone(chunk), End: end}, nil
}

func (p *passing) ResponseHeaders(h hostsim.Headers, end bool) (hostsim.Step, error) {
	p.maps[hostsim.MapResponseHeaders] = h
	return hostsim.Step{Headers: true, End: end}, nil
}

func (p *passing) ResponseBody(chunk []byte, end bool) (hostsim.Step, error) {
	return hostsim.Step{Data: bytes.Clone(chunk), End: end}, nil
}

func (p *passing) RequestTrailers(h hostsim.Headers) (hostsim.Step, error) {
	p.maps[hostsim.MapRequestTrailers] = h
	return hostsim.Step{End: true}, nil
}

func (p *passing) ResponseTrailers(h hostsim.Headers) (hostsim.Step, error) {
	p.maps[hostsim.MapResponseTrailers] = h
	return hostsim.Step{End: true}, nil
}

func (p *passing) Headers(kind hostsim.MapKind) hostsim.Headers { return p.maps[kind] }

func (p *passing) RequestReady() hostsim.Step      { return hostsim.Step{} }
func (p *passing) ResponseReady() hostsim.Step     { return hostsim.Step{} }
func (p *passing) LocalReply() *hostsim.LocalReply { return nil }
func (p *passing) Wake() <-chan struct{}           { return nil }
func (p *passing) End(hostsim.EndReason) error     { return nil }
