//go:build !wasip1

package abi

import "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

// GetSharedData fails: there is no host outside wasm.
func GetSharedData(string) ([]byte, uint32, error) { return nil, 0, types.ErrorInternalFailure }

// SetSharedData fails: there is no host outside wasm.
func SetSharedData(string, []byte, uint32) error { return types.ErrorInternalFailure }
