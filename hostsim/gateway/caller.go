package gateway

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// callLimit bounds an answer's body, in bytes. A larger one is a reset.
const callLimit = 32 << 20

// Caller carries out the plugin's own requests: its Call is made for hostsim.Config.HTTPCall, its GRPC for GRPCCall. It must exist before the
// Host, and so before a Gateway. Safe for concurrent use.
type Caller struct {
	clusters map[string]*cluster
	transports
	ctx    context.Context
	cancel context.CancelFunc
}

// NewCaller returns a Caller that knows the clusters. The error wraps ErrConfig.
func NewCaller(clusters []Cluster) (*Caller, error) {
	byName, err := clustersByName(clusters)
	if err != nil {
		return nil, err
	}
	c := &Caller{clusters: byName, transports: newTransports(defaultDialTimeout)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Close ends the calls under way. Their plugin hears of a reset, if it still hears.
func (c *Caller) Close() {
	c.cancel()
	c.closeIdle()
}

// Call sends the request to the cluster's hosts, in turn until one takes the connection, and reports whether there is
// such a cluster. The answer comes when it comes.
func (c *Caller) Call(call *hostsim.HTTPCall) bool {
	cluster := c.clusters[call.Cluster]
	if cluster == nil {
		return false
	}
	go func() { call.Respond(c.send(cluster, call)) }()
	return true
}

func (c *Caller) send(cluster *cluster, call *hostsim.HTTPCall) hostsim.HTTPResponse {
	ctx, cancel := c.ctx, context.CancelFunc(func() {})
	if call.Timeout > 0 { // the host's clock says when the plugin hears of that; this frees the connection
		ctx, cancel = context.WithTimeout(ctx, call.Timeout+time.Second)
	}
	defer cancel()
	failure := refusal(errNoHost)
	for _, host := range cluster.attempts("", len(cluster.hosts)) {
		request, err := upstreamRequest(ctx, host, call.Headers, "")
		if err != nil {
			return hostsim.HTTPResponse{}
		}
		if len(call.Body) > 0 {
			request.Body, request.ContentLength = io.NopCloser(bytes.NewReader(call.Body)), int64(len(call.Body))
		}
		resp, err := c.of(cluster).RoundTrip(request)
		if err == nil {
			return answer(resp)
		}
		if connect := (*connectError)(nil); !errors.As(err, &connect) || ctx.Err() != nil {
			return hostsim.HTTPResponse{}
		}
		failure = refusal(errConnect)
	}
	return failure
}

// answer reads a whole response.
func answer(resp *http.Response) hostsim.HTTPResponse {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, callLimit+1))
	if err != nil || len(body) > callLimit {
		return hostsim.HTTPResponse{}
	}
	return hostsim.HTTPResponse{Headers: responseHeaders(resp), Body: body, Trailers: toHeaders(nil, resp.Trailer)}
}

// refusal is what the plugin hears where no host took the request.
func refusal(err error) hostsim.HTTPResponse {
	return hostsim.HTTPResponse{Headers: localHeaders(http.StatusServiceUnavailable, err.Error()), Body: []byte(err.Error())}
}
