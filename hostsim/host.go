package hostsim

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Host is one plugin in one simulated proxy: its module, compiled once, and a virtual machine per thread. All methods are
// safe for concurrent use unless they say otherwise.
type Host struct {
	config     Config
	clock      Clock
	properties map[string][]byte
	program    atomic.Pointer[program] // the one in force

	shared  *SharedSpace
	foreign map[string]ForeignFunction
	metrics registry
	logs    logbook

	main    *Worker
	workers []*Worker
	past    Counters // of canaries
	pastMu  sync.Mutex

	plugin        atomic.Pointer[[]byte] // the plugin configuration in force
	reconfiguring sync.Mutex
	updates       int // guarded by reconfiguring
	advancing     sync.Mutex
	ticker        chan struct{}
	eventLimit    int // MaxEvents; less in tests
	overruns      atomic.Uint64

	sharedHook atomic.Pointer[func(worker int, op SharedOp, key string)]
	callHook   atomic.Pointer[func(worker int, name string) (Status, bool)]
	schedule   atomic.Pointer[schedule]
	faults     atomic.Pointer[faultSet]
}

// New compiles the module and starts it as Envoy does: a canary that runs context_create, vm_start and configure and is
// thrown away, then the main thread's virtual machine, then one per worker. A refused start is an error and leaves
// nothing behind: it wraps ErrConfig, ErrImports (an *ImportError names each import), ErrABI, ErrRefused (vm_start or
// configure returned false) or ErrTrap. ctx bounds the compilation.
func New(ctx context.Context, c Config) (*Host, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	c = c.withDefaults()
	h := &Host{config: c, clock: c.Clock, ticker: make(chan struct{}, 1), eventLimit: MaxEvents}
	h.properties = make(map[string][]byte, len(c.Properties))
	for path, value := range c.Properties {
		h.properties[wirePath(path)] = value
	}
	h.shared = c.SharedData.Space(c.VMID)
	h.foreign = c.foreignFunctions()
	h.metrics.stats = map[statKey]*stat{}
	h.logs = logbook{limit: c.LogLimit, sink: c.Log}
	h.plugin.Store(&c.PluginConfig)
	if err := h.InjectFaults(c.Faults); err != nil {
		return nil, err
	}
	p, err := h.load(ctx, c.Wasm, c.VMConfig)
	if err != nil {
		return nil, err
	}
	h.program.Store(p)
	if h.config.Recorder != nil {
		if err := h.config.Recorder.begin(h); err != nil {
			h.config.Recorder = nil // it is another host's
			return nil, errors.Join(err, h.Close())
		}
	}
	if err := h.start(); err != nil {
		return nil, errors.Join(err, h.Close())
	}
	return h, nil
}

// start tries the configuration in a canary and then gives every thread its virtual machine.
func (h *Host) start() error {
	h.main = &Worker{host: h, index: MainThread}
	for i := range h.config.Workers {
		h.workers = append(h.workers, &Worker{host: h, index: i})
	}
	if err := h.try(h.program.Load(), h.config.PluginConfig); err != nil {
		return err
	}
	for _, w := range h.threads() {
		if err := w.boot(); err != nil {
			return fmt.Errorf("%s: %w", ThreadName(w.index), err)
		}
	}
	return nil
}

// try runs a configuration in a canary. Source: proxy-wasm-cpp-host, WasmHandleBase::canary.
func (h *Host) try(p *program, pluginConfig []byte) error {
	v, err := h.newVM(p, Canary, 0)
	if err != nil {
		return err
	}
	defer v.close()
	err = v.addRoot(pluginConfig)
	h.pastMu.Lock()
	defer h.pastMu.Unlock()
	h.past.add(v)
	return err
}

// threads are the main thread and the workers, in the order in which Envoy starts them.
func (h *Host) threads() []*Worker { return append([]*Worker{h.main}, h.workers...) }

// Close frees every virtual machine without further callbacks, as a proxy that is killed (see Shutdown), and ends the
// recording if there is one. Call it when all other calls have returned; streams and workers must not be used afterwards.
// The error is that of the recording's writer, or of freeing code.
func (h *Host) Close() (err error) {
	for _, w := range h.threads() {
		if w == nil || w.vm == nil {
			continue // it never started
		}
		for _, v := range w.machines() {
			v.close()
			err = errors.Join(err, v.program.close())
		}
	}
	if h.config.Recorder != nil {
		err = errors.Join(err, h.config.Recorder.end())
	}
	return errors.Join(err, h.program.Load().close())
}

// Workers returns the number of workers.
func (h *Host) Workers() int { return len(h.workers) }

// Worker returns worker i, from 0 to Workers()-1. It panics outside that range.
func (h *Host) Worker(i int) *Worker { return h.workers[i] }

// Main returns the main thread's virtual machine, whose index is MainThread. It ticks and is not meant for streams.
func (h *Host) Main() *Worker { return h.main }

// Now is the host clock's time of day.
func (h *Host) Now() time.Time { return h.clock.Now() }

// pluginConfig is the configuration in force.
func (h *Host) pluginConfig() []byte { return *h.plugin.Load() }

// Reconfigure replaces the plugin configuration as Envoy's listener update does when code and VM configuration stay the
// same: a canary tries it first; when that is refused the error wraps ErrRefused or ErrTrap and the old configuration
// stays. Then each virtual machine, the same instance as before, gets context_create with a new root, vm_start again, and
// configure. Streams keep the root that they began under; old roots tick until Drain.
func (h *Host) Reconfigure(pluginConfig []byte) error {
	h.reconfiguring.Lock()
	defer h.reconfiguring.Unlock()
	return h.reconfigure(slices.Clone(pluginConfig))
}

func (h *Host) reconfigure(pluginConfig []byte) error {
	h.recordConfig(pluginConfig)
	if err := h.try(h.program.Load(), pluginConfig); err != nil {
		return err
	}
	h.plugin.Store(&pluginConfig)
	h.updates++
	var errs []error
	for _, w := range h.threads() {
		w.mu.Lock()
		if w.vm.dead == nil {
			if err := w.vm.addRoot(pluginConfig); err != nil {
				errs = append(errs, fmt.Errorf("%s: %w", ThreadName(w.index), err))
			}
		}
		w.mu.Unlock()
	}
	return errors.Join(errs...)
}

// Drain ends the drain time of earlier configurations: each of their roots is told done and delete as soon as no stream
// uses it, and ticks until then. A virtual machine of earlier code is closed when all its roots have ended. Envoy would cut
// those streams when its drain time ends; hostsim leaves that to the caller, who holds them.
func (h *Host) Drain() {
	h.recordDrain()
	for _, w := range h.threads() {
		w.drain()
	}
}

// Metrics returns every metric defined so far, sorted by name.
func (h *Host) Metrics() []Metric { return h.metrics.list() }

// Metric returns the metric of that name and whether the plugin has defined it.
func (h *Host) Metric(name string) (Metric, bool) { return h.metrics.find(name) }

// Logs returns the entries kept so far, oldest first, Config.LogLimit at most.
func (h *Host) Logs() []LogEntry { return h.logs.list() }

func (h *Host) log(worker int, level LogLevel, message string) {
	if level >= h.config.LogLevel {
		h.logs.add(LogEntry{Time: h.clock.Now(), Worker: worker, Level: level, Message: message})
	}
}

// SharedData returns the plugin's namespace of the shared store.
func (h *Host) SharedData() *SharedSpace { return h.shared }

// Counters returns the sum over all virtual machines, including those that are gone.
func (h *Host) Counters() Counters {
	var c Counters
	h.pastMu.Lock()
	c.merge(h.past)
	h.pastMu.Unlock()
	for _, w := range h.threads() {
		c.merge(w.Counters())
	}
	return c
}

// fillSeed makes the seed of one instance's random numbers.
func fillSeed(seed *[32]byte, host uint64, worker int, generation uint64) {
	binary.LittleEndian.PutUint64(seed[0:], host)
	binary.LittleEndian.PutUint64(seed[8:], uint64(int64(worker)))
	binary.LittleEndian.PutUint64(seed[16:], generation)
}
