//go:build !pinwheel_inject

package abi

const injecting = false

// inject makes callbacks panic in test builds (tag pinwheel_inject) only.
func inject(string) {}
