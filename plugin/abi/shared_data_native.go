//go:build !wasip1

package abi

import "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

// Get fails: there is no host outside wasm.
func (*SharedData) Get(string) ([]byte, uint32, error) { return nil, 0, types.ErrorInternalFailure }

// Set fails: there is no host outside wasm.
func (*SharedData) Set(string, []byte, uint32) error { return types.ErrorInternalFailure }
