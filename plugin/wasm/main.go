// Command wasm is the plugin as gateways load it. Official Go builds it:
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared ./plugin/wasm
package main

import "github.com/pinwheel-proxy/pinwheel/plugin"

// A reactor module has no main: everything is set up before it would run.
func init() { plugin.Register() }

func main() {}
