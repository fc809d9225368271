package abi

// sift is that of sift_native.go, written in wasm: every turn runs it over all headers of
// a request, and official Go makes of each turn of a loop a jump by table, at which V8
// moves all variables of the function about.
//
//go:noescape
func sift(h *headers, buckets *[64]*name, out []found)
