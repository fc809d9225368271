package abi

// SharedData is the memory that all workers of the gateway process share, without the
// allocations of the SDK's calls.
type SharedData struct{}

// CreateCAS creates a key that does not exist and fails on one that does. (0 would
// overwrite whatever is there: envoyproxy/envoy, SharedData::set.)
const CreateCAS = 0xffffffff

// Forget is FreeHostMemory.
func (*SharedData) Forget() { FreeHostMemory() }
