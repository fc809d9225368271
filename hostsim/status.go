package hostsim

import "fmt"

// Status is what a host function answers to the module. Source: proxy-wasm specification 0.2.1, proxy_status_t.
type Status uint32

const (
	StatusOK                   Status = 0
	StatusNotFound             Status = 1
	StatusBadArgument          Status = 2
	StatusSerializationFailure Status = 3
	StatusParseFailure         Status = 4
	StatusBadExpression        Status = 5
	StatusInvalidMemoryAccess  Status = 6
	StatusEmpty                Status = 7
	StatusCASMismatch          Status = 8
	StatusResultMismatch       Status = 9
	StatusInternalFailure      Status = 10
	StatusBrokenConnection     Status = 11
	StatusUnimplemented        Status = 12
)

var statusNames = [...]string{"OK", "NOT_FOUND", "BAD_ARGUMENT", "SERIALIZATION_FAILURE", "PARSE_FAILURE", "BAD_EXPRESSION",
	"INVALID_MEMORY_ACCESS", "EMPTY", "CAS_MISMATCH", "RESULT_MISMATCH", "INTERNAL_FAILURE", "BROKEN_CONNECTION", "UNIMPLEMENTED"}

// String returns the specification's name without its prefix, such as CAS_MISMATCH.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("Status(%d)", uint32(s))
}

// MapKind names a header map of a stream. Source: proxy-wasm specification 0.2.1, proxy_header_map_type_t.
type MapKind uint32

const (
	MapRequestHeaders   MapKind = 0
	MapRequestTrailers  MapKind = 1
	MapResponseHeaders  MapKind = 2
	MapResponseTrailers MapKind = 3
)

// The kinds from 4 to 7 belong to call-outs; the specification ends there.
const (
	mapGRPCInitial      MapKind = 4
	mapGRPCTrailing     MapKind = 5
	mapHTTPCallHeaders  MapKind = 6
	mapHTTPCallTrailers MapKind = 7
	mapKindMax          MapKind = 7
)

// bufferKind names a byte buffer. Source: proxy-wasm specification 0.2.1, proxy_buffer_type_t.
type bufferKind uint32

const (
	bufferRequestBody  bufferKind = 0
	bufferResponseBody bufferKind = 1
	bufferDownstream   bufferKind = 2
	bufferUpstream     bufferKind = 3
	bufferHTTPCall     bufferKind = 4
	bufferGRPCReceive  bufferKind = 5
	bufferVMConfig     bufferKind = 6
	bufferPluginConfig bufferKind = 7
	bufferCallData     bufferKind = 8
	bufferKindMax      bufferKind = 8
)
