// Package full lets any plugin written for github.com/tetratelabs/proxy-wasm-go-sdk
// v0.24.0 build with the official Go toolchain. One blank import is all:
//
//	import _ "github.com/pinwheel-proxy/pinwheel/plugin/abi/full"
//
//	GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o plugin.wasm .
//
// That SDK imports host functions and exports callbacks only when TinyGo builds it.
// Built by official Go it talks to a mock inside the module, which exports nothing but
// _initialize. This package binds every host call of the SDK and exports every
// callback, with the version of the ABI that the SDK has under TinyGo, 0.2.0.
// docs/move-off-tinygo.md is the page for people who change over.
//
// # main
//
// TinyGo's module runs func main when it starts. A c-shared module of official Go
// never does, so this package calls it once, before the first callback, after all
// init functions. SetVMContext may stand in either. Host calls are legal in main then,
// where TinyGo's main may only log. main must return.
//
// # Panics
//
// A panic that leaves a callback is logged in one line at level critical (callback,
// text, file and line), and the VM traps: what follows is the gateway's failure policy,
// as under TinyGo. A panic in init or in a goroutine ends the VM too, by the Go
// runtime's own hand: it prints its usual lines to stderr, which gateways log, and
// exits.
//
// # Memory
//
// Strings and slices that SDK calls return belong to the plugin and may be kept, as
// the SDK's documentation leads one to expect. Each is an allocation of its own. (This
// is where plugin/abi differs: there they are valid until the callback returns.)
//
// # Cost
//
// Every callback is exported, whether the plugin defines it or not, and each exported
// one is a call into the VM: proxy_on_response_body once for every chunk. A plugin that
// must save that uses plugin/abi as a model.
//
// The module is single threaded. Importing this package and plugin/abi into one module
// is an error of the linker, which names both.
package full
