//go:build !wasip1

package abi

import "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

// HTTPGet fails: there is no host outside wasm.
func HTTPGet(string, string, uint32) (uint32, error) { return 0, types.ErrorInternalFailure }

// HTTPPost fails: there is no host outside wasm.
func HTTPPost(string, string, string, string, uint32) (uint32, error) {
	return 0, types.ErrorInternalFailure
}

// HTTPCallBody returns nothing: there is no host outside wasm.
func HTTPCallBody(int) []byte { return nil }
