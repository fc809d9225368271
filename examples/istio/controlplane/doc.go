// Package controlplane runs Istio's own control plane code over the YAML of examples/istio: a Gateway, a Service and its
// pods go in, and what Istio would send to the gateway's Envoy comes out. The tests look at that, and run it in a stock
// Envoy with the shipped plugin. It is a module of its own: Istio's control plane is 1500 packages.
package controlplane
