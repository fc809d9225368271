package hostsim

import (
	"encoding/binary"
	"unicode/utf8"
)

// parseGRPCService reads the first argument of a gRPC call-out as an envoy.config.core.v3.GrpcService message, and reports
// whether it is one: Envoy tries that first and takes the bytes for a cluster's name only if they are none. Some names are
// messages by accident, "authority" for one (an unknown field of eight bytes): they are refused with BAD_ARGUMENT here, and
// abort Envoy 1.40.0 with "panic: unset oneof". target is the cluster of envoy_grpc, the target URI of google_grpc, or "".
func parseGRPCService(b []byte) (target string, ok bool) {
	const envoyGRPC, googleGRPC = 1, 2
	ok = eachField(b, func(number uint64, value []byte) bool {
		if number != envoyGRPC && number != googleGRPC {
			return true
		}
		return eachField(value, func(inner uint64, text []byte) bool {
			if inner == 1 { // cluster_name, target_uri
				target = string(text)
			}
			return inner != 1 || utf8.Valid(text)
		})
	})
	return target, ok
}

// eachField walks a protocol buffer message and calls f for each field that is bytes, text or a message. It reports whether
// b is well formed and f agreed to everything.
func eachField(b []byte, f func(number uint64, value []byte) bool) bool {
	for len(b) > 0 {
		tag, n := binary.Uvarint(b)
		if n <= 0 || tag>>3 == 0 || tag>>3 >= 1<<29 {
			return false
		}
		b = b[n:]
		size, skip := uint64(0), 0
		switch tag & 7 {
		case 0:
			_, skip = binary.Uvarint(b)
			if skip <= 0 {
				return false
			}
		case 1:
			skip = 8
		case 5:
			skip = 4
		case 2:
			if size, n = binary.Uvarint(b); n <= 0 || size > uint64(len(b)-n) {
				return false
			}
			if !f(tag>>3, b[n:n+int(size)]) {
				return false
			}
			skip = n + int(size)
		default: // groups are not read: no message here has one
			return false
		}
		if skip > len(b) {
			return false
		}
		b = b[skip:]
	}
	return true
}
