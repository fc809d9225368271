// Package embedded has what runs hostsim serve as a service, and holds docs/embedded-gateway.md to what really happens.
package embedded
