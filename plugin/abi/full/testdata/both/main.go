// Both imports two bindings, which the linker refuses.
package main

import (
	_ "github.com/pinwheel-proxy/pinwheel/plugin/abi"
	_ "github.com/pinwheel-proxy/pinwheel/plugin/abi/full"
)

func main() {}
