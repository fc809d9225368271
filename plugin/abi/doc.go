// Package abi binds github.com/tetratelabs/proxy-wasm-go-sdk v0.24.0 to the
// official Go toolchain.
//
// That SDK imports host functions and exports callbacks only when TinyGo builds
// it. Built by official Go for wasip1 it silently talks to an in-process mock and
// the module exports nothing but _initialize. This package closes the gap from
// outside: it imports the host functions itself, puts them behind the SDK's
// interface, and exports the proxy-wasm callbacks. A plugin calls Register where the
// SDK's documentation has SetVMContext; the SDK's other calls stay as they are.
//
// Only the callbacks that Pinwheel uses are exported: each one that a module
// exports is a call into the VM, for every stream or even for every chunk of a
// body. Host functions that Pinwheel does not use are answered UNIMPLEMENTED,
// and said so by name in the log.
//
// A panic never leaves an exported callback. It is counted (Faults), logged as
// one line a minute at most, and the callback answers "continue".
//
// Memory that the host fills (header values, shared data, bodies) is valid until
// the callback returns, and is used again by the next one: what must live longer
// is copied. That holds for every string and slice that an SDK call returns.
//
// A module is single threaded: nothing here is safe for concurrent use, and
// nothing needs to be.
package abi
