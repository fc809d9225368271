package abi

import "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

// What a callback of a request's body may answer beside the SDK's Continue and
// Pause (proxy-wasm-cpp-host, FilterDataStatus). Pause makes a gateway collect the
// body, show all of it each time, and refuse the request with 413 where it outgrows
// the gateway's buffer.
const (
	// HoldBody keeps the chunk back, with all that were held before it; the next
	// callback sees its own chunk only. A full buffer makes the gateway stop
	// reading from the client until the stream goes on.
	HoldBody types.Action = 2
	// DropBody throws the chunk away.
	DropBody types.Action = 3
)
