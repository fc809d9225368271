// Command unbound is a plugin as the SDK's own documentation has it, without the
// bridge to official Go.
package main

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

func main() {}

func init() { proxywasm.SetVMContext(&types.DefaultVMContext{}) }
