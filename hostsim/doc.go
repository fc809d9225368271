// Package hostsim runs a proxy-wasm module the way Envoy does, without Envoy: one virtual machine per worker thread and
// one on the main thread, shared data with Envoy's compare-and-swap rules, timers on a clock that the caller moves, and
// streams whose callbacks come in Envoy's order. It serves tests of any plugin in any language and the embedded
// gateway of the hostsim command.
//
// A [Host] is one plugin in one proxy. A [Worker] is one of its virtual machines. A [Stream] is one HTTP request and its
// response on one worker, a [Connection] a TCP connection with the plugin as a network filter. The caller plays the gateway
// around the plugin: it hands each part of a message to the stream and passes on what the returned [Step] lets through.
// [Config.HTTPCall] and [Config.GRPCCall] carry out the plugin's own requests; a [SharedQueue] leads from one plugin to
// another; [Config.ForeignFunctions] offers functions beyond the specification. Every function of ABI 0.2.1, 0.2.0 and 0.1.0
// is there, and [Inspect] tells which a module needs.
//
// [Host.Reconfigure] gives the same virtual machines another configuration, [Host.Update] sets machines of other code beside
// them; either is tried in a canary before, and [Host.Drain] ends what was there. [Host.Shutdown] ends all.
//
// A crash ends a virtual machine as it does in Envoy, with the same failure policies. A [Fault] makes host functions and
// callbacks fail at a certain call; [Host.OnHostCall] does so where a test decides.
//
// What several workers do at the same time is a [Scenario]: [Host.Play] runs it in an order drawn from a seed or given as a
// list, changing over at host calls; [Host.Explore] runs it in every order that could matter, and so proves what its check
// says, or finds the order in which it does not hold. [Host.OnSharedData] lets a test act between a worker's read and its
// write. [Host.Snapshot] and [Host.Restore] set a host back.
//
// Two runs with the same module, configuration, seed and calls leave the same memory behind, which [Worker.MemoryHash] tells.
// A [Recorder] takes down all that passes between host and module, and [Check] plays it to the same module or another build.
// [Host.Coverage] says which callbacks and host calls have been made.
//
// What the host does and refuses follows a [Profile], by default Envoy 1.40. Behaviour that surprises carries its source
// beside the code: the proxy-wasm specification 0.2.1, proxy-wasm-cpp-host, Envoy, or a run on the real one.
package hostsim
