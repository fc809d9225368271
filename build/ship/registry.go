package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"

	"github.com/google/go-containerregistry/pkg/registry"
)

// serveRegistry serves a registry, in memory and for everybody who can reach it, until it is stopped. It takes loopback
// addresses only; port 0 is any that is free, and the line that it prints names it.
func serveRegistry(address string, out io.Writer) error {
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("%q is not allowed: a loopback address and a port, such as 127.0.0.1:5000", address)
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "registry on %s\n", listener.Addr())
	handler := registry.New(registry.Logger(log.New(io.Discard, "", 0)), registry.WithReferrersSupport(true))
	return http.Serve(listener, handler)
}
