//go:build wasip1

package main

import "unsafe"

type ptr = unsafe.Pointer

func str(s string) ptr     { return ptr(unsafe.StringData(s)) }
func size(s string) uint32 { return uint32(len(s)) }

//go:wasmimport env proxy_log
func hLog(level uint32, p ptr, n uint32) uint32

//go:wasmimport env proxy_get_log_level
func hLogLevel(level ptr) uint32

//go:wasmimport env proxy_get_header_map_value
func hGetHeader(kind uint32, k ptr, kn uint32, v, vn ptr) uint32

//go:wasmimport env proxy_add_header_map_value
func hAddHeader(kind uint32, k ptr, kn uint32, v ptr, vn uint32) uint32

//go:wasmimport env proxy_replace_header_map_value
func hReplaceHeader(kind uint32, k ptr, kn uint32, v ptr, vn uint32) uint32

//go:wasmimport env proxy_remove_header_map_value
func hRemoveHeader(kind uint32, k ptr, kn uint32) uint32

//go:wasmimport env proxy_get_header_map_pairs
func hGetPairs(kind uint32, p, n ptr) uint32

//go:wasmimport env proxy_set_header_map_pairs
func hSetPairs(kind uint32, p ptr, n uint32) uint32

//go:wasmimport env proxy_get_header_map_size
func hHeaderSize(kind uint32, n ptr) uint32

//go:wasmimport env proxy_get_buffer_bytes
func hGetBuffer(kind, start, length uint32, p, n ptr) uint32

//go:wasmimport env proxy_get_buffer_status
func hBufferStatus(kind uint32, n, flags ptr) uint32

//go:wasmimport env proxy_set_buffer_bytes
func hSetBuffer(kind, start, length uint32, p ptr, n uint32) uint32

//go:wasmimport env proxy_get_property
func hGetProperty(k ptr, kn uint32, v, vn ptr) uint32

//go:wasmimport env proxy_set_property
func hSetProperty(k ptr, kn uint32, v ptr, vn uint32) uint32

//go:wasmimport env proxy_get_shared_data
func hGetShared(k ptr, kn uint32, v, vn, cas ptr) uint32

//go:wasmimport env proxy_set_shared_data
func hSetShared(k ptr, kn uint32, v ptr, vn, cas uint32) uint32

//go:wasmimport env proxy_register_shared_queue
func hRegisterQueue(k ptr, kn uint32, id ptr) uint32

//go:wasmimport env proxy_http_call
func hHTTPCall(u ptr, un uint32, h ptr, hn uint32, b ptr, bn uint32, t ptr, tn uint32, timeout uint32, id ptr) uint32

//go:wasmimport env proxy_send_local_response
func hSendLocal(status uint32, d ptr, dn uint32, b ptr, bn uint32, h ptr, hn uint32, grpc uint32) uint32

//go:wasmimport env proxy_continue_stream
func hContinue(kind uint32) uint32

//go:wasmimport env proxy_close_stream
func hClose(kind uint32) uint32

//go:wasmimport env proxy_set_tick_period_milliseconds
func hSetTick(ms uint32) uint32

//go:wasmimport env proxy_set_effective_context
func hEffective(id uint32) uint32

//go:wasmimport env proxy_get_current_time_nanoseconds
func hNow(t ptr) uint32

//go:wasmimport env proxy_done
func hDone() uint32

//go:wasmimport env proxy_define_metric
func hDefineMetric(kind uint32, k ptr, kn uint32, id ptr) uint32

//go:wasmimport env proxy_increment_metric
func hIncMetric(id uint32, n int64) uint32

//go:wasmimport env proxy_record_metric
func hRecMetric(id uint32, n uint64) uint32

//go:wasmimport env proxy_get_metric
func hGetMetric(id uint32, v ptr) uint32
