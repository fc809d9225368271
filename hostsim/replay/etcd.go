package replay

import (
	"fmt"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/etcd"
)

// DefaultEtcdLatency is what an answer of etcd takes where nothing else is said.
const DefaultEtcdLatency = 2 * time.Millisecond

// Etcd is the simulated etcd that the gateways of one run agree through, on the replay's clock. It is for one run: its keys
// stay.
type Etcd struct {
	server  *etcd.Server
	latency time.Duration
	outages []Event
	outage  etcd.Outage
}

// NewEtcd returns an etcd without keys, whose answers take latency; zero means DefaultEtcdLatency. Of the schedule it heeds what
// concerns etcd. While it is away its clock runs on, and leases end.
func NewEtcd(latency time.Duration, schedule []Event) (*Etcd, error) {
	e := &Etcd{server: etcd.New(), latency: latency}
	if e.latency == 0 {
		e.latency = DefaultEtcdLatency
	}
	if e.latency < time.Microsecond || e.latency > time.Hour {
		return nil, fmt.Errorf("%w: etcd's answers take %v: 1us to 1h", ErrRouterConfig, latency)
	}
	for _, event := range schedule {
		if event.Kind.OfEtcd() {
			e.outages = append(e.outages, event)
		}
	}
	e.server.SetFaults(etcd.Faults{Latency: e.latency})
	return e, nil
}

// EnableAuth has etcd ask for the name and the password.
func (e *Etcd) EnableAuth(name, password string) {
	e.server.EnableAuth(map[string]etcd.User{name: {Password: password, Root: true}})
}

// call answers a plugin's call at now, which is less than zero before the replay begins.
func (e *Etcd) call(now time.Duration, c *hostsim.HTTPCall) bool {
	e.server.AdvanceTo(now + warmUp)
	if o := e.outageAt(now); o != e.outage {
		e.outage = o
		e.server.SetFaults(etcd.Faults{Outage: o, Latency: e.latency})
	}
	return e.server.HTTPCall(c)
}

// outageAt is what becomes of a request at now: of several events that last, what the first says.
func (e *Etcd) outageAt(now time.Duration) etcd.Outage {
	for _, o := range e.outages {
		if now < o.At || o.For > 0 && now >= o.At+o.For {
			continue
		}
		if o.Kind == EventEtcdHangs {
			return etcd.Hung
		}
		return etcd.Refused
	}
	return etcd.NoOutage
}
