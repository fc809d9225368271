// Package gateway is a real HTTP gateway around a hostsim.Host: clients and replicas on sockets, the plugin in between.
// It is the part of Envoy that a routing plugin needs: a connection belongs to one worker, the plugin sees each part of
// request and response as it passes, and a request header that the plugin writes picks the upstream host.
//
// It serves HTTP/1.1 and HTTP/2 without TLS, and speaks HTTP/1.1 to upstreams, or HTTP/2 where the Cluster says so. It adds
// no headers of its own, has no admin interface, and passes on no upgrades. Trailers pass in both directions; HTTP/2
// requests lose those that no trailer header has announced, because net/http does. As in Envoy, an HTTP/1 client that closes
// its sending side has left. Unlike there, one that leaves while its upload stands still, because upstream or plugin takes no
// more of it, is noticed only when the upload goes on, the exchange ends, or Config.IdleTimeout has passed.
package gateway

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// DefaultTargetHeader is the request header in which a plugin names upstream hosts.
const DefaultTargetHeader = "x-gateway-destination-endpoint"

// ErrConfig is wrapped by every error of Config.Validate.
var ErrConfig = errors.New("gateway: bad configuration")

// defaultDialTimeout is Envoy's.
const defaultDialTimeout = 5 * time.Second

// Config describes a gateway.
type Config struct {
	// Host runs the plugin. Nil means no plugin: requests go round robin over the cluster's hosts, and TargetHeader, which
	// then only a client can have sent, picks nothing. The gateway does not close it.
	Host *hostsim.Host
	// Clusters are the upstreams; at least one. A request whose Host header without port is a cluster's name goes there,
	// every other one to the first.
	Clusters []Cluster
	// TargetHeader names the request header that picks the upstream host: a comma list of addresses, first choice first.
	// Upstreams do not see it. Empty means DefaultTargetHeader.
	TargetHeader string
	// Attempts bounds the hosts asked for one request, the first one included: the next one is asked where a host takes no
	// connection, or cuts it before its response has begun and no more than BufferLimit of the request has left. Zero means 3.
	Attempts int
	// BufferLimit is the host's own (hostsim.Config.BufferLimit), in bytes: with more than that waiting in a paused request,
	// the gateway stops reading from the client. Zero means hostsim.DefaultBufferLimit.
	BufferLimit int
	// MaxHeaderBytes bounds a request's headers: beyond it, and some 4 KiB more, the answer is 431. Zero means 60 KiB,
	// Envoy's default.
	MaxHeaderBytes int
	// MaxBodyBytes bounds a request's body: a longer one is answered 413, or cut where an answer has begun. Zero means
	// without bound.
	MaxBodyBytes int64
	// MaxRequests bounds the requests at one time: further ones are answered 503 at once. Zero means without bound.
	MaxRequests int
	// MaxConnections bounds the clients' connections: further ones wait until one closes. Zero means without bound.
	MaxConnections int
	// IdleTimeout is how long a connection may be without a request, a request's body may stand still before it is
	// complete (408, or cut where an answer has begun), and a client may take nothing of its answer (cut). A complete
	// request waits for its answer without bound. Zero means without bound.
	IdleTimeout time.Duration
	// ReadHeaderTimeout bounds the arrival of a request's headers. Zero means 10 s.
	ReadHeaderTimeout time.Duration
	// DialTimeout bounds one connection attempt. Zero means 5 s, Envoy's default.
	DialTimeout time.Duration
	// ShutdownTimeout is how long Serve waits for requests in flight when it is told to stop. Zero means 10 s.
	ShutdownTimeout time.Duration
	// OnHeaders hears of a request when the headers of its response go to the client, OnEnd when it has ended, whatever
	// became of it: at most once, and once. Both are called on the request's own goroutine, several at a time, and hold it
	// up. Nil means nobody. Requests that net/http refuses (400, 431) are not among them.
	OnHeaders, OnEnd func(*Access)
	// ErrorLog receives what goes wrong beside any one request. Nil means the log package's standard logger.
	ErrorLog *log.Logger
}

// Validate reports the first field that is out of range, as an error that wraps ErrConfig.
func (c *Config) Validate() error {
	if _, err := clustersByName(c.Clusters); err != nil {
		return err
	}
	for _, n := range []struct {
		field string
		value int64
	}{
		{"Attempts", int64(c.Attempts)}, {"BufferLimit", int64(c.BufferLimit)}, {"MaxHeaderBytes", int64(c.MaxHeaderBytes)},
		{"ReadHeaderTimeout", int64(c.ReadHeaderTimeout)}, {"DialTimeout", int64(c.DialTimeout)},
		{"ShutdownTimeout", int64(c.ShutdownTimeout)}, {"MaxBodyBytes", c.MaxBodyBytes}, {"MaxRequests", int64(c.MaxRequests)},
		{"MaxConnections", int64(c.MaxConnections)}, {"IdleTimeout", int64(c.IdleTimeout)},
	} {
		if n.value < 0 {
			return fmt.Errorf("%w: %s is negative", ErrConfig, n.field)
		}
	}
	return nil
}

func (c *Config) withDefaults() {
	orElse(&c.TargetHeader, DefaultTargetHeader)
	orElse(&c.Attempts, 3)
	orElse(&c.BufferLimit, hostsim.DefaultBufferLimit)
	orElse(&c.MaxHeaderBytes, 60<<10)
	orElse(&c.ReadHeaderTimeout, 10*time.Second)
	orElse(&c.DialTimeout, defaultDialTimeout)
	orElse(&c.ShutdownTimeout, 10*time.Second)
	orElse(&c.ErrorLog, log.Default())
}

func orElse[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Gateway is an http.Handler; Serve runs it on a listener, which is how connections get workers of their own. Safe for
// concurrent use.
type Gateway struct {
	config   Config
	clusters map[string]*cluster
	first    *cluster
	transports
	turn     atomic.Uint64  // connections, or requests outside Serve, so far
	running  sync.WaitGroup // requests; none begins once a server has been told to stop
	admitted atomic.Int64   // requests, for MaxRequests
}

// New returns a gateway that is not yet listening. The error wraps ErrConfig.
func New(c Config) (*Gateway, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c.withDefaults()
	g := &Gateway{config: c, transports: newTransports(c.DialTimeout)}
	g.clusters, _ = clustersByName(c.Clusters) // valid by now
	g.first = g.clusters[c.Clusters[0].Name]
	return g, nil
}

// workerKey is the context key of a connection's worker number.
type workerKey struct{}

// Serve answers connections from ln until ctx ends, and fires the plugin's ticks meanwhile. It then takes no more
// connections, lets the requests in flight finish for ShutdownTimeout at most, cuts the others, and returns nil when the
// plugin has heard of each one's end: then Host may be shut down and closed. The error is another one's, such as the
// listener's. It closes ln.
func (g *Gateway) Serve(ctx context.Context, ln net.Listener) error {
	var protocols http.Protocols
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler:           g,
		Protocols:         &protocols,
		MaxHeaderBytes:    g.config.MaxHeaderBytes,
		ReadHeaderTimeout: g.config.ReadHeaderTimeout,
		IdleTimeout:       g.config.IdleTimeout,
		ErrorLog:          g.config.ErrorLog,
		ConnContext: func(ctx context.Context, _ net.Conn) context.Context {
			return context.WithValue(ctx, workerKey{}, g.nextWorker())
		},
	}
	ticking, stopTicks := context.WithCancel(context.Background())
	var ticks sync.WaitGroup
	defer ticks.Wait()
	defer stopTicks()
	if g.config.Host != nil {
		ticks.Go(func() { _ = g.config.Host.RunTicks(ticking) }) // its only error is ticking's
	}
	if g.config.MaxConnections > 0 || g.config.IdleTimeout > 0 {
		ln = newLimitListener(ln, g.config.MaxConnections, g.config.IdleTimeout)
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(ln) }()
	select {
	case err := <-failed:
		err = errors.Join(err, server.Close())
		g.running.Wait()
		return err
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.Background(), g.config.ShutdownTimeout)
	defer cancel()
	err := server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		g.config.ErrorLog.Printf("gateway: requests still running after %v were cut", g.config.ShutdownTimeout)
		err = server.Close()
	}
	g.running.Wait() // Close does not
	g.closeIdle()
	return err
}

func (g *Gateway) nextWorker() int {
	n := g.turn.Add(1) - 1
	if g.config.Host == nil {
		return 0
	}
	return int(n % uint64(g.config.Host.Workers()))
}

// ServeHTTP passes one request through the plugin to an upstream host and its answer back. It panics with
// http.ErrAbortHandler, which net/http turns into a cut connection or stream, when an answer under way breaks off.
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	g.running.Add(1)
	defer g.running.Done()
	x := newExchange(g, w, r)
	reason := hostsim.EndUpstreamReset
	defer func() { x.close(reason) }()
	reason = x.run()
	if reason != hostsim.EndNormal && !x.answered {
		panic(http.ErrAbortHandler)
	}
}

// filterFor begins the plugin's part in a request.
func (g *Gateway) filterFor(r *http.Request) filter {
	if g.config.Host == nil {
		return &passing{}
	}
	worker, ok := r.Context().Value(workerKey{}).(int)
	if !ok {
		worker = g.nextWorker()
	}
	return g.config.Host.Worker(worker).NewStream()
}
