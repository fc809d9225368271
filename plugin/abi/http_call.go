package abi

import "encoding/binary"

// HTTPCaller is a plugin context that sends requests of its own (HTTPGet, HTTPPost).
type HTTPCaller interface {
	// OnHTTPCallResponse tells of the answer to a call, once for each call that
	// was made, unless the plugin context or the VM is gone by then. During it
	// HTTPCallHeaders and HTTPCallBody read the answer. headers is their number,
	// 0 where the connection broke; bodySize is in bytes. Envoy answers 503 and 504
	// itself where the upstream does not.
	OnHTTPCallResponse(call uint32, headers, bodySize int)
}

// appendHeaders appends headers as hosts take them, the inverse of headers.read.
func appendHeaders(dst []byte, headers ...[2]string) []byte {
	le := binary.LittleEndian
	dst = le.AppendUint32(dst, uint32(len(headers)))
	for i := range 2 * len(headers) {
		dst = le.AppendUint32(dst, uint32(len(headers[i/2][i%2])))
	}
	for i := range 2 * len(headers) {
		dst = append(append(dst, headers[i/2][i%2]...), 0)
	}
	return dst
}
