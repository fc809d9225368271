package full

//go:wasmexport proxy_on_request_headers
func onRequestHeaders(contextID uint32, headers int32, end bool) uint32 {
	defer crash("proxy_on_request_headers")
	return proxyOnRequestHeaders(contextID, int(headers), end)
}

//go:wasmexport proxy_on_request_body
func onRequestBody(contextID uint32, size int32, end bool) uint32 {
	defer crash("proxy_on_request_body")
	return proxyOnRequestBody(contextID, int(size), end)
}

//go:wasmexport proxy_on_request_trailers
func onRequestTrailers(contextID uint32, trailers int32) uint32 {
	defer crash("proxy_on_request_trailers")
	return proxyOnRequestTrailers(contextID, int(trailers))
}

//go:wasmexport proxy_on_response_headers
func onResponseHeaders(contextID uint32, headers int32, end bool) uint32 {
	defer crash("proxy_on_response_headers")
	return proxyOnResponseHeaders(contextID, int(headers), end)
}

//go:wasmexport proxy_on_response_body
func onResponseBody(contextID uint32, size int32, end bool) uint32 {
	defer crash("proxy_on_response_body")
	return proxyOnResponseBody(contextID, int(size), end)
}

//go:wasmexport proxy_on_response_trailers
func onResponseTrailers(contextID uint32, trailers int32) uint32 {
	defer crash("proxy_on_response_trailers")
	return proxyOnResponseTrailers(contextID, int(trailers))
}
