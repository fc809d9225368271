package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// simCluster is the name of the cluster of simulated replicas.
const simCluster = "sim"

// fleet is a number of simulated replicas, each on a loopback port of its own.
type fleet struct {
	addresses []string
	replicas  []*replica.Server
	servers   []*http.Server
}

// startFleet starts n replicas, which differ in name only. A replica's name is its address.
func startFleet(n int, c replica.Config) (*fleet, error) {
	f := &fleet{}
	for range n {
		if err := f.add(c); err != nil {
			return nil, errors.Join(fmt.Errorf("simulated replica: %w", err), f.stop())
		}
	}
	return f, nil
}

func (f *fleet) add(c replica.Config) error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	c.Name = ln.Addr().String()
	r, err := replica.New(c)
	if err != nil {
		return errors.Join(err, ln.Close())
	}
	s := &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	f.addresses = append(f.addresses, c.Name)
	f.replicas = append(f.replicas, r)
	f.servers = append(f.servers, s)
	go func() { _ = s.Serve(ln) }() // ends by stop
	return nil
}

// stop closes all replicas at once, requests in flight included.
func (f *fleet) stop() error {
	var errs []error
	for _, s := range f.servers {
		errs = append(errs, s.Close())
	}
	return errors.Join(errs...)
}

// promptTokens is how many tokens of prompts the replica at an address has had, and how many of them it had cached.
func (f *fleet) promptTokens(address string) (cached, all int64) {
	i := slices.Index(f.addresses, address)
	if i < 0 {
		return 0, 0
	}
	s := f.replicas[i].Stats()
	return s.CachedTokens, s.PromptTokens
}
