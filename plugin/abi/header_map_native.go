//go:build !wasip1

package abi

import "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

// ReplaceRequestHeader fails: there is no host outside wasm.
func ReplaceRequestHeader(string, string) error { return types.ErrorInternalFailure }

// RequestHeaders returns no headers: there is no host outside wasm.
func RequestHeaders() Headers { return Headers{} }

// ResponseHeaders returns no headers: there is no host outside wasm.
func ResponseHeaders() Headers { return Headers{} }
