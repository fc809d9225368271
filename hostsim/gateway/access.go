package gateway

import (
	"net/http"
	"sync/atomic"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// Access is what is known of one request. It is valid during the call that hands it over, and read-only.
type Access struct {
	// Request is the client's, whose body is not to be touched.
	Request *http.Request
	// Response holds the headers that went to the client; it is empty if Status is 0.
	Response http.Header
	// Began is when the request's headers had come.
	Began time.Time
	// Duration is from there to the response's headers, or to the end.
	Duration time.Duration
	// Status is the response's, 0 if none went to the client.
	Status int
	// RequestBytes and ResponseBytes are bodies without framing, as far as they came.
	RequestBytes, ResponseBytes int64
	// Cluster is the request's cluster.
	Cluster string
	// Upstream is the host that was asked last, empty if none was.
	Upstream string
	// Attempts is the number of hosts that were asked.
	Attempts int
	// Detail says who answered if no upstream did: local_reply for the plugin, else why the gateway did, such as
	// overload, request_payload_too_large, stream_idle_timeout or no_healthy_upstream.
	Detail string
	// End is how the request ended; EndNormal until then.
	End hostsim.EndReason
}

// record keeps an exchange's Access. Its hosts are set on the goroutine that asks them.
type record struct {
	Access
	asked    atomic.Pointer[host]
	attempts atomic.Int32
}

// tell hands the record to f.
func (x *exchange) tell(f func(*Access)) {
	if f == nil {
		return
	}
	a := &x.record.Access
	a.Request, a.Response, a.Cluster = x.r, x.w.Header(), x.cluster.name
	a.Duration = time.Since(a.Began)
	if h := x.record.asked.Load(); h != nil {
		a.Upstream = h.address
	}
	a.Attempts = int(x.record.attempts.Load())
	f(a)
}

// host is what the gateway knows of one upstream host.
type host struct {
	address                   string
	running, requests, failed atomic.Int64
}

// Upstream is one host as the gateway sees it.
type Upstream struct {
	Cluster, Address string
	// Running is the number of requests that it has, and Requests of those that it ever was asked.
	Running, Requests int64
	// Failures is how many of the last requests in a row had no answer from it: no connection, or cut before it began.
	Failures int64
}

// Upstreams lists the hosts in the order of Config.Clusters, each once a cluster. The plugin's own requests do not count.
func (g *Gateway) Upstreams() []Upstream {
	var list []Upstream
	for _, c := range g.config.Clusters {
		seen := map[string]bool{}
		cluster := g.clusters[c.Name]
		for _, address := range cluster.hosts {
			if seen[address] {
				continue
			}
			seen[address] = true
			h := cluster.known[address]
			list = append(list, Upstream{c.Name, address, h.running.Load(), h.requests.Load(), h.failed.Load()})
		}
	}
	return list
}
