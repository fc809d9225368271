package full

import _ "unsafe" // for go:linkname

// What the SDK exports under TinyGo.

//go:linkname proxyOnVMStart github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnVMStart
func proxyOnVMStart(contextID uint32, size int) bool

//go:linkname proxyOnConfigure github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnConfigure
func proxyOnConfigure(contextID uint32, size int) bool

//go:linkname proxyOnContextCreate github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnContextCreate
func proxyOnContextCreate(contextID, pluginID uint32)

//go:linkname proxyOnTick github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnTick
func proxyOnTick(contextID uint32)

//go:linkname proxyOnQueueReady github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnQueueReady
func proxyOnQueueReady(contextID, queueID uint32)

//go:linkname proxyOnHTTPCallResponse github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnHttpCallResponse
func proxyOnHTTPCallResponse(contextID, call uint32, headers, bodySize, trailers int)

//go:linkname proxyOnNewConnection github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnNewConnection
func proxyOnNewConnection(contextID uint32) uint32

//go:linkname proxyOnDownstreamData github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnDownstreamData
func proxyOnDownstreamData(contextID uint32, size int, end bool) uint32

//go:linkname proxyOnDownstreamConnectionClose github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnDownstreamConnectionClose
func proxyOnDownstreamConnectionClose(contextID, peer uint32)

//go:linkname proxyOnUpstreamData github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnUpstreamData
func proxyOnUpstreamData(contextID uint32, size int, end bool) uint32

//go:linkname proxyOnUpstreamConnectionClose github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnUpstreamConnectionClose
func proxyOnUpstreamConnectionClose(contextID, peer uint32)

//go:linkname proxyOnRequestHeaders github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnRequestHeaders
func proxyOnRequestHeaders(contextID uint32, headers int, end bool) uint32

//go:linkname proxyOnRequestBody github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnRequestBody
func proxyOnRequestBody(contextID uint32, size int, end bool) uint32

//go:linkname proxyOnRequestTrailers github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnRequestTrailers
func proxyOnRequestTrailers(contextID uint32, trailers int) uint32

//go:linkname proxyOnResponseHeaders github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnResponseHeaders
func proxyOnResponseHeaders(contextID uint32, headers int, end bool) uint32

//go:linkname proxyOnResponseBody github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnResponseBody
func proxyOnResponseBody(contextID uint32, size int, end bool) uint32

//go:linkname proxyOnResponseTrailers github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnResponseTrailers
func proxyOnResponseTrailers(contextID uint32, trailers int) uint32

//go:linkname proxyOnLog github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnLog
func proxyOnLog(contextID uint32)

//go:linkname proxyOnDone github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnDone
func proxyOnDone(contextID uint32) bool

//go:linkname proxyOnDelete github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal.proxyOnDelete
func proxyOnDelete(contextID uint32)
