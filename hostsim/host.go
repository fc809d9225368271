package hostsim

import (
	"context"
	"time"
)

// Host is one plugin in one simulated proxy: its module, compiled once, and a virtual machine per thread. All methods are
// safe for concurrent use unless they say otherwise.
type Host struct{}

// New compiles the module and starts it as Envoy does: a canary that runs context_create, vm_start and configure and is
// thrown away, then the main thread's virtual machine, then one per worker. A refused start is an error and leaves
// nothing behind: ErrConfig, ErrImports (wrapped by *ImportError), ErrABI, ErrRefused (vm_start or configure returned
// false) or ErrTrap.
func New(ctx context.Context, c Config) (*Host, error) { panic("todo") }

// Close frees every virtual machine without further callbacks, as a proxy that exits.
func (h *Host) Close() error { panic("todo") }

// Workers returns the number of workers.
func (h *Host) Workers() int { panic("todo") }

// Worker returns worker i, from 0 to Workers()-1. It panics outside that range.
func (h *Host) Worker(i int) *Worker { panic("todo") }

// Main returns the main thread's virtual machine, whose index is MainThread. It ticks but serves no streams.
func (h *Host) Main() *Worker { panic("todo") }

// Now is the host clock's time of day.
func (h *Host) Now() time.Time { panic("todo") }

// Advance moves the virtual clock on by d and runs every tick that falls due on the way, each at its own time, those of
// one moment in the order main thread, worker 0, worker 1 and so on. It panics on a clock other than *VirtualClock.
// One call at a time.
func (h *Host) Advance(d time.Duration) { panic("todo") }

// RunTicks fires ticks as the clock passes them until ctx ends, then returns ctx's error. It is the real clock's
// counterpart of Advance.
func (h *Host) RunTicks(ctx context.Context) error { panic("todo") }

// Reconfigure replaces the plugin configuration as Envoy's listener update does when code and VM configuration stay the
// same: a canary tries it first; when that is refused the error wraps ErrRefused and the old configuration stays. Then
// each virtual machine, the same instance as before, gets context_create with a new root, vm_start again, and configure.
// Streams keep the root that they began under; old roots tick until Drain.
func (h *Host) Reconfigure(pluginConfig []byte) error { panic("todo") }

// Drain ends the drain time of earlier configurations: each of their roots is told done and delete as soon as no stream
// uses it, and ticks until then.
func (h *Host) Drain() { panic("todo") }

// Metrics returns every metric defined so far, sorted by name.
func (h *Host) Metrics() []Metric { panic("todo") }

// Metric returns the metric of that name and whether the plugin has defined it.
func (h *Host) Metric(name string) (Metric, bool) { panic("todo") }

// Logs returns the entries kept so far, oldest first, Config.LogLimit at most.
func (h *Host) Logs() []LogEntry { panic("todo") }

// SharedData returns the plugin's namespace of the shared store.
func (h *Host) SharedData() *SharedSpace { panic("todo") }

// OnSharedData installs a function that runs before each shared-data call of a virtual machine, on its goroutine, and may
// block. It must not call into the worker that it is told of. Nil removes it.
func (h *Host) OnSharedData(f func(worker int, op SharedOp, key string)) { panic("todo") }

// Interleave runs fns[i] with worker i, each on its own goroutine, but lets only one of them run at a time and changes
// over, by a random choice drawn from seed, before each shared-data call. The same seed, module and state give the same
// order; the returned trace shows it. fns must each touch only their own worker. It panics when there are more functions
// than workers.
func (h *Host) Interleave(seed uint64, fns ...func(*Worker)) []SharedAccess { panic("todo") }

// SharedOp is a kind of shared-data call.
type SharedOp uint8

const (
	// SharedGet is proxy_get_shared_data.
	SharedGet SharedOp = iota
	// SharedSet is proxy_set_shared_data.
	SharedSet
)

// SharedAccess is one shared-data call of an interleaved run.
type SharedAccess struct {
	Worker int
	Op     SharedOp
	Key    string
	Status Status
}

// Counters is what a host has counted since it started.
type Counters struct {
	// Callbacks counts calls into the module by export name.
	Callbacks map[string]uint64
	// HostCalls counts calls from the module by import name, such as env.proxy_log.
	HostCalls map[string]uint64
	// Unimplemented counts those host calls that hostsim answered UNIMPLEMENTED, by name.
	Unimplemented map[string]uint64
}

// Counters returns the sum over all virtual machines, including discarded ones.
func (h *Host) Counters() Counters { panic("todo") }
