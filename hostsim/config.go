package hostsim

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// ErrConfig is wrapped by every error that Config.Validate reports, and by those about a recorded host that is asked for
// what a recording cannot hold.
var ErrConfig = errors.New("hostsim: invalid configuration")

// DefaultBufferLimit is Envoy's default per-connection buffer limit in bytes.
const DefaultBufferLimit = 1 << 20

// DefaultReloadBackoff is the time a crashed worker waits before FailReload gives it a new virtual machine. Envoy's base
// interval is 1 s too, with jitter that takes off up to half of it; hostsim has no jitter.
const DefaultReloadBackoff = time.Second

// DefaultLogLimit is the number of log entries that a Host keeps.
const DefaultLogLimit = 10_000

// FailurePolicy says what becomes of requests on a worker whose virtual machine has trapped. The request in which it
// trapped is answered 503 under each policy, and streams in flight on that worker are cut.
type FailurePolicy uint8

const (
	// FailClosed answers every later request on that worker with 503.
	FailClosed FailurePolicy = iota
	// FailOpen lets every later request pass without the plugin.
	FailOpen
	// FailReload answers 503 until ReloadBackoff has passed, then builds a new virtual machine at the next request.
	// Shared data and metrics survive. The main thread's virtual machine never comes back, for it sees no requests.
	FailReload
)

// Config describes one plugin in one simulated proxy. The zero value of every field but Wasm is usable.
type Config struct {
	// Wasm is the module's binary. Required.
	Wasm []byte
	// VMConfig is what the plugin reads as the virtual machine's configuration.
	VMConfig []byte
	// PluginConfig is what the plugin reads as its configuration, byte for byte.
	PluginConfig []byte
	// Name is readable by the plugin as the property plugin_name.
	Name string
	// RootID is readable by the plugin as the property plugin_root_id.
	RootID string
	// VMID selects the namespace of shared data. Empty is a namespace of its own, as in Envoy.
	VMID string
	// Env holds environment variables for the module, such as GOGC.
	Env map[string]string

	// Profile is the gateway to imitate. The zero value is Envoy140.
	Profile Profile
	// AllowOnHeadersStopIteration lets body callbacks arrive while the headers callback has paused the stream (Envoy 1.35
	// and later, same name). Without it such a stream stands still until the plugin resumes it.
	AllowOnHeadersStopIteration bool
	// Workers is the number of worker threads, 1 to 256. Zero means 1. The main thread's virtual machine comes on top.
	Workers int
	// BufferLimit is the number of body bytes that a paused stream may hold before it is answered 413 (request) or 500
	// (response). Zero means DefaultBufferLimit.
	BufferLimit int
	// FailurePolicy applies after a trap.
	FailurePolicy FailurePolicy
	// ReloadBackoff is the waiting time of FailReload. Zero means DefaultReloadBackoff.
	ReloadBackoff time.Duration
	// Clock is the host's time. Nil means a new VirtualClock.
	Clock Clock
	// Seed feeds random_get. The same seed, module and calls give the same run.
	Seed uint64

	// Properties are answered to every stream and to the plugin context, by path (see Path). A stream's own come first.
	Properties map[string][]byte
	// SharedData is the process-wide store. Nil means a new one; give several hosts the same one to have several plugins
	// in one proxy.
	SharedData *SharedData
	// HTTPCall carries out the plugin's own requests: it reports whether there is such a cluster, and has the call answered
	// by HTTPCall.Respond, now or later. It runs while the caller's worker is held, so it must not call into the Host. Nil
	// means that there are no clusters.
	HTTPCall func(*HTTPCall) bool
	// GRPCCall carries out the plugin's own gRPC calls, as HTTPCall does for HTTP: it reports whether there is such a cluster,
	// and has the call answered by GRPCCall.Respond, now or later. Nil means that there are no clusters.
	GRPCCall func(*GRPCCall) bool
	// ForeignFunctions are what the plugin may call by name, on top of EnvoyForeignFunctions, which they replace by name. A
	// nil function takes one away.
	ForeignFunctions map[string]ForeignFunction

	// MemoryLimitPages bounds each virtual machine's memory, in pages of 64 KiB, up to 65536. Zero means
	// DefaultMemoryLimitPages.
	MemoryLimitPages uint32
	// CallTimeout stops the module when one call into it, host functions included, takes longer on the machine's own clock;
	// the virtual machine is then dead, and the error wraps ErrDeadline. Zero means no limit, as in Envoy. With a limit
	// every loop of the module checks for it, and every call into it sets a timer: a short stream takes five times as long
	// (BenchmarkHosts), so it is for tests of a plugin that may hang.
	CallTimeout time.Duration
	// Faults are in force from the first start on, until Host.InjectFaults.
	Faults []Fault

	// Log receives every log entry, in the order of writing; it may be called from several goroutines, one at a time.
	// Nil means that entries are only kept (Host.Logs).
	Log func(LogEntry)
	// LogLevel is the lowest level that is kept and what proxy_get_log_level answers. The zero value is LogTrace.
	LogLevel LogLevel
	// LogLimit is the number of entries kept for Host.Logs, oldest dropped first, and earlier where their messages have more
	// than 64 MiB together. Zero means DefaultLogLimit.
	LogLimit int
	// Recorder takes down every callback and host call, for Check. Nil records nothing and costs nothing.
	Recorder *Recorder
	// CacheDir is a directory for compiled code, created if absent. Compiled code is also kept in memory, for the life of
	// the process, and shared by all hosts in it with the same directory; empty means in memory only. Four modules that no
	// host runs any more stay ready to start.
	CacheDir string
}

// Validate reports the first thing that is wrong with c, wrapped in ErrConfig.
func (c *Config) Validate() error {
	switch {
	case len(c.Wasm) == 0:
		return fmt.Errorf("%w: Wasm is empty", ErrConfig)
	case c.Workers < 0 || c.Workers > 256:
		return fmt.Errorf("%w: Workers is %d, allowed are 1 to 256", ErrConfig, c.Workers)
	case c.FailurePolicy > FailReload:
		return fmt.Errorf("%w: FailurePolicy is %d, allowed are FailClosed, FailOpen, FailReload", ErrConfig, c.FailurePolicy)
	case c.ReloadBackoff < 0:
		return fmt.Errorf("%w: ReloadBackoff is negative", ErrConfig)
	case c.CallTimeout < 0:
		return fmt.Errorf("%w: CallTimeout is negative", ErrConfig)
	case c.BufferLimit < 0:
		return fmt.Errorf("%w: BufferLimit is negative", ErrConfig)
	case c.LogLimit < 0:
		return fmt.Errorf("%w: LogLimit is negative", ErrConfig)
	case c.LogLevel > LogCritical:
		return fmt.Errorf("%w: LogLevel is %d, allowed are 0 to %d", ErrConfig, c.LogLevel, LogCritical)
	case c.MemoryLimitPages > 65536:
		return fmt.Errorf("%w: MemoryLimitPages is %d, at most 65536", ErrConfig, c.MemoryLimitPages)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.ContainsRune(c.Env[name], 0) {
			return fmt.Errorf("%w: Env has %q, allowed are names without = and values, both without zero bytes", ErrConfig, name)
		}
	}
	if _, err := armFaults(c.Faults); err != nil {
		return fmt.Errorf("%w: %w", ErrConfig, err)
	}
	return nil
}

// withDefaults returns a copy of c in which every zero that means a default holds it.
func (c Config) withDefaults() Config {
	if c.Profile.Name == "" {
		c.Profile = Envoy140()
	}
	if c.Workers == 0 {
		c.Workers = 1
	}
	if c.Clock == nil {
		c.Clock = NewVirtualClock()
	}
	if c.LogLimit == 0 {
		c.LogLimit = DefaultLogLimit
	}
	if c.ReloadBackoff == 0 {
		c.ReloadBackoff = DefaultReloadBackoff
	}
	if c.BufferLimit == 0 {
		c.BufferLimit = DefaultBufferLimit
	}
	if c.MemoryLimitPages == 0 {
		c.MemoryLimitPages = DefaultMemoryLimitPages
	}
	if c.SharedData == nil {
		c.SharedData = NewSharedData()
	}
	return c
}
