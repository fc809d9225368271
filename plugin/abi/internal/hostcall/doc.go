// Package hostcall is what plugin/abi and plugin/abi/full share: the host functions
// of proxy-wasm as wasm imports, and the SDK's interface to put them behind.
//
// A function that nothing calls is not imported by the module that is built: a
// package which uses ten of them makes modules that need ten of them.
package hostcall
