//go:build !wasip1

package abi

import "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

// ReplaceRequestHeader fails: there is no host outside wasm.
func ReplaceRequestHeader(string, string) error { return types.ErrorInternalFailure }

// headerMap returns nothing: there is no host outside wasm.
func headerMap(Map) []byte { return nil }
