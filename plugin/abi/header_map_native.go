//go:build !wasip1

package abi

// RequestHeaders returns no headers: there is no host outside wasm.
func RequestHeaders() Headers { return Headers{} }

// ResponseHeaders returns no headers: there is no host outside wasm.
func ResponseHeaders() Headers { return Headers{} }
