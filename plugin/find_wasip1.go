package plugin

import "github.com/pinwheel-proxy/pinwheel/policy"

// find is that of find_native.go, written in wasm, for the reason of abi's sift: a shard
// has some twenty pins.
//
//go:noescape
func (s shard) find(h policy.Hash) int
