// OWASP Coraza's plugin, as its authors wrote it for TinyGo, built with official Go.
package main

import (
	_ "github.com/pinwheel-proxy/pinwheel/plugin/abi/full"

	"github.com/corazawaf/coraza-proxy-wasm/wasmplugin"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
)

func main() { proxywasm.SetVMContext(wasmplugin.NewVMContext()) }
