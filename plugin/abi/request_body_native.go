//go:build !wasip1

package abi

// EnterStream fails: there is no host outside wasm.
func EnterStream(uint32) bool { return false }

// EnterPlugin does nothing.
func EnterPlugin(uint32) {}

// ContinueRequest fails: there is no host outside wasm.
func ContinueRequest() bool { return false }

// RequestBody returns nothing: there is no host outside wasm.
func RequestBody(int, int) []byte { return nil }
