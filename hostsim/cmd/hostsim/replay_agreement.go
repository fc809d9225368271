package main

import (
	"encoding/json"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// agreement is what a replay must know of how a plugin's configuration has gateways agree. Whether it is right is for the plugin
// to say.
type agreement struct {
	Kind     string `json:"kind"`
	Username string `json:"username"`
	Password string `json:"password"`
}

func readAgreement(config []byte) agreement {
	var c struct {
		Agreement agreement `json:"agreement"`
	}
	if json.Unmarshal(config, &c) != nil {
		return agreement{} // the plugin says what is wrong
	}
	return c.Agreement
}

func (a *agreement) byEtcd() bool { return a.Kind == "etcd" }

// newEtcd is an etcd that lets in whom the configuration names.
func (a *agreement) newEtcd(latency time.Duration, events []replay.Event) (*replay.Etcd, error) {
	e, err := replay.NewEtcd(latency, events)
	if err == nil && a.Username != "" {
		e.EnableAuth(a.Username, a.Password)
	}
	return e, err
}
