//go:build !pinwheel_inject

package abi

// inject makes callbacks panic in test builds (tag pinwheel_inject) only.
func inject(string) {}
