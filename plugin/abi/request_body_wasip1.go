package abi

import (
	"unsafe"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi/internal/hostcall"
)

// RequestBody returns size bytes, from start on, of the chunk that a callback of a
// request's body is about, or as many as there are. Valid until the callback ends,
// or FreeHostMemory. (Behind an answer of Pause the host counts from the beginning of
// the body.)
func RequestBody(start, size int) []byte {
	var at, n uint32
	const requestBody = 0
	if hostcall.GetBuffer(requestBody, uint32(start), uint32(size), unsafe.Pointer(&at), unsafe.Pointer(&n)) != 0 || n == 0 {
		return nil
	}
	return hostcall.Bytes(at, n)
}

// EnterStream makes the host calls that follow in this callback be about that
// stream. It is false if there is none.
func EnterStream(contextID uint32) bool { return hostcall.SetEffectiveContext(contextID) == 0 }

// EnterPlugin makes them be about that plugin context again.
func EnterPlugin(contextID uint32) { hostcall.SetEffectiveContext(contextID) }

// ContinueRequest lets a paused request go on once the callback has ended. Its
// headers can be changed until then.
func ContinueRequest() bool {
	const requestStream = 0
	return hostcall.ContinueStream(requestStream) == 0
}
