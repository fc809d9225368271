package hostcall

import "unsafe"

// Host functions, proxy-wasm ABI 0.2.1, each named as there. wasm is 32 bit, Go's
// int and pointers on wasip1 are 64 bit in the compiler's eyes: sizes are uint32,
// and out-parameters are addresses of uint32 variables that Address widens
// afterwards. All answer a status, 0 for OK.

//go:wasmimport env proxy_log
//go:noescape
func Log(level uint32, message unsafe.Pointer, size uint32) uint32

//go:wasmimport env proxy_get_property
//go:noescape
func GetProperty(path unsafe.Pointer, pathSize uint32, value, valueSize unsafe.Pointer) uint32

//go:wasmimport env proxy_set_property
//go:noescape
func SetProperty(path unsafe.Pointer, pathSize uint32, value unsafe.Pointer, valueSize uint32) uint32

//go:wasmimport env proxy_send_local_response
//go:noescape
func SendLocalResponse(code uint32, details unsafe.Pointer, detailsSize uint32, body unsafe.Pointer, bodySize uint32, headers unsafe.Pointer, headersSize uint32, grpc int32) uint32

//go:wasmimport env proxy_get_shared_data
//go:noescape
func GetSharedData(key unsafe.Pointer, keySize uint32, value, valueSize, cas unsafe.Pointer) uint32

//go:wasmimport env proxy_set_shared_data
//go:noescape
func SetSharedData(key unsafe.Pointer, keySize uint32, value unsafe.Pointer, valueSize, cas uint32) uint32

//go:wasmimport env proxy_register_shared_queue
//go:noescape
func RegisterSharedQueue(name unsafe.Pointer, nameSize uint32, id unsafe.Pointer) uint32

//go:wasmimport env proxy_resolve_shared_queue
//go:noescape
func ResolveSharedQueue(vmID unsafe.Pointer, vmIDSize uint32, name unsafe.Pointer, nameSize uint32, id unsafe.Pointer) uint32

//go:wasmimport env proxy_dequeue_shared_queue
//go:noescape
func DequeueSharedQueue(id uint32, value, valueSize unsafe.Pointer) uint32

//go:wasmimport env proxy_enqueue_shared_queue
//go:noescape
func EnqueueSharedQueue(id uint32, value unsafe.Pointer, valueSize uint32) uint32

//go:wasmimport env proxy_get_header_map_value
//go:noescape
func GetHeader(kind uint32, key unsafe.Pointer, keySize uint32, value, valueSize unsafe.Pointer) uint32

//go:wasmimport env proxy_add_header_map_value
//go:noescape
func AddHeader(kind uint32, key unsafe.Pointer, keySize uint32, value unsafe.Pointer, valueSize uint32) uint32

//go:wasmimport env proxy_replace_header_map_value
//go:noescape
func ReplaceHeader(kind uint32, key unsafe.Pointer, keySize uint32, value unsafe.Pointer, valueSize uint32) uint32

//go:wasmimport env proxy_remove_header_map_value
//go:noescape
func RemoveHeader(kind uint32, key unsafe.Pointer, keySize uint32) uint32

//go:wasmimport env proxy_get_header_map_pairs
//go:noescape
func GetHeaderPairs(kind uint32, value, valueSize unsafe.Pointer) uint32

//go:wasmimport env proxy_set_header_map_pairs
//go:noescape
func SetHeaderPairs(kind uint32, pairs unsafe.Pointer, size uint32) uint32

//go:wasmimport env proxy_get_buffer_bytes
//go:noescape
func GetBuffer(kind, start, size uint32, value, valueSize unsafe.Pointer) uint32

//go:wasmimport env proxy_set_buffer_bytes
//go:noescape
func SetBuffer(kind, start, size uint32, value unsafe.Pointer, valueSize uint32) uint32

//go:wasmimport env proxy_continue_stream
func ContinueStream(kind uint32) uint32

//go:wasmimport env proxy_close_stream
func CloseStream(kind uint32) uint32

//go:wasmimport env proxy_http_call
//go:noescape
func HTTPCall(upstream unsafe.Pointer, upstreamSize uint32, headers unsafe.Pointer, headersSize uint32, body unsafe.Pointer, bodySize uint32, trailers unsafe.Pointer, trailersSize, timeout uint32, call unsafe.Pointer) uint32

//go:wasmimport env proxy_call_foreign_function
//go:noescape
func CallForeignFunction(name unsafe.Pointer, nameSize uint32, param unsafe.Pointer, paramSize uint32, value, valueSize unsafe.Pointer) uint32

//go:wasmimport env proxy_set_tick_period_milliseconds
func SetTickPeriod(milliseconds uint32) uint32

//go:wasmimport env proxy_set_effective_context
func SetEffectiveContext(contextID uint32) uint32

//go:wasmimport env proxy_done
func Done() uint32

//go:wasmimport env proxy_define_metric
//go:noescape
func DefineMetric(kind uint32, name unsafe.Pointer, nameSize uint32, id unsafe.Pointer) uint32

//go:wasmimport env proxy_increment_metric
func IncrementMetric(id uint32, offset int64) uint32

//go:wasmimport env proxy_record_metric
func RecordMetric(id uint32, value uint64) uint32

//go:wasmimport env proxy_get_metric
//go:noescape
func GetMetric(id uint32, value unsafe.Pointer) uint32

// Bytes turns what a host wrote as an address and a length into a slice; nothing has no
// address. It costs two comparisons, where unsafe.Slice calls the runtime.
func Bytes(at, n uint32) []byte {
	if n == 0 {
		return nil
	}
	return (*[1 << 32]byte)(unsafe.Pointer(Address(at)))[:n:n]
}

// Address turns what a host wrote as an address into a pointer.
func Address(at uint32) *byte {
	address := uintptr(at)
	return *(**byte)(unsafe.Pointer(&address))
}
