package main

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"
	"time"

	extproc "github.com/envoyproxy/go-control-plane/envoy/service/ext_proc/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

const (
	// target is the header by which Envoy's override_host policy finds the replica and its spares.
	target = "x-gateway-destination-endpoint"
	// What Pinwheel's configuration has by default.
	spares     = 2
	maxIDBytes = 256
	timeout    = 2 * time.Hour

	// mostAnswers bounds the encoded answers that are kept: there is one for each replica with each pair of spares.
	mostAnswers = 4096
)

// picker answers Envoy. Any number of streams may be open at a time.
type picker struct {
	extproc.UnimplementedExternalProcessorServer
	header string
	secret policy.Secret
	begin  time.Time

	mu      sync.Mutex
	pool    policy.Pool
	list    []int  // scratch: positions of spares
	target  []byte // scratch
	answers map[string]answer
}

// newPicker makes a picker among replicas with distinct addresses, one at least.
func newPicker(replicas []string, header string, sessions int) (*picker, error) {
	p := &picker{header: header, begin: time.Now(), answers: map[string]answer{}}
	p.pool.Timeout, p.pool.MaxSessions = timeout.Milliseconds(), sessions
	_, _ = rand.Read(p.secret[:]) // never fails
	members, known := []policy.Member{}, map[string]bool{}
	for _, r := range replicas {
		if _, err := netip.ParseAddrPort(r); err != nil {
			return nil, fmt.Errorf("replica %q: %w", r, err)
		}
		if known[r] {
			return nil, fmt.Errorf("replica %s twice", r)
		}
		known[r] = true
		members = append(members, policy.Member{Address: r, Weight: 1, State: policy.Active})
	}
	p.pool.Apply(members, 0, 0)
	return p, nil
}

func newServer(p *picker) *grpc.Server {
	server := grpc.NewServer(grpc.ForceServerCodecV2(codec{header: p.header}))
	extproc.RegisterExternalProcessorServer(server, p)
	return server
}

// Process is one stream, and in Envoy one request. The answer to request headers names the replica; to ask anything else is
// codes.InvalidArgument.
func (p *picker) Process(stream extproc.ExternalProcessor_ProcessServer) error {
	var q question
	for {
		if err := stream.RecvMsg(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if !q.headers {
			return status.Error(codes.InvalidArgument, "extproc: only request headers are expected; see processing_mode of Envoy's filter")
		}
		if err := stream.SendMsg(p.pick(q.session)); err != nil {
			return err
		}
	}
}

// pick decides a turn of the session, or a request without one if the id is empty.
func (p *picker) pick(id []byte) answer {
	var key policy.Key
	if len(id) > 0 && len(id) <= maxIDBytes {
		key = policy.NewKey(p.secret, id)
	}
	now := time.Since(p.begin).Milliseconds()

	p.mu.Lock()
	defer p.mu.Unlock()
	var d policy.Decision
	switch {
	case len(id) == 0:
		d = p.pool.Unrecorded(key, policy.Keyless, now)
	case len(id) > maxIDBytes:
		d = p.pool.Unrecorded(key, policy.Oversized, now)
	default:
		d = p.pool.Turn(key, nil, now)
	}
	primary := p.pool.Index(d.Replica) // there always is one: none ever goes
	p.target = append(p.target[:0], p.pool.List[primary].Address...)
	p.list = policy.Spares(p.list[:0], &p.pool.Replicas, key, primary, spares, now)
	for _, i := range p.list {
		p.target = append(append(p.target, ','), p.pool.List[i].Address...)
	}
	a, ok := p.answers[string(p.target)]
	if !ok {
		if len(p.answers) == mostAnswers {
			clear(p.answers)
		}
		a = newAnswer(string(p.target))
		p.answers[string(p.target)] = a
	}
	return a
}
