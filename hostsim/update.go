package hostsim

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
)

// Update is what comes in force by Host.Update.
type Update struct {
	// Wasm is the new module's binary. Nil keeps the code in force.
	Wasm []byte
	// VMConfig is the new virtual machine configuration. Nil keeps the one in force; make it empty but not nil for none.
	VMConfig []byte
	// PluginConfig is the new plugin configuration, nil for none.
	PluginConfig []byte
}

// Update replaces code and configurations as Envoy's listener update does when vm_id stays the same. Where neither code nor
// VM configuration changes it is Reconfigure. Else the new module is loaded as by New and tried in a canary; when that fails
// the error is one of New's and everything stays as it was. Then each thread gets a virtual machine of the new module
// beside the old one: new streams and connections go to the new, those that have begun stay on the old, and both tick, until
// Drain ends the old. Shared data, queues and metrics are kept. Messages of queues go to the new one. A thread on which the
// new one fails to start, though the canary did not, keeps the old one, and the error names it. A recorded host refuses new
// code (ErrConfig). Memory doubles while an update drains. Source: seen on Envoy 1.36.4 and 1.40.0.
func (h *Host) Update(ctx context.Context, u Update) error {
	h.reconfiguring.Lock()
	defer h.reconfiguring.Unlock()
	old := h.program.Load()
	if u.Wasm == nil {
		u.Wasm = old.wasm
	}
	if u.VMConfig == nil {
		u.VMConfig = old.vmConfig
	}
	u.PluginConfig = slices.Clone(u.PluginConfig)
	if bytes.Equal(u.Wasm, old.wasm) && bytes.Equal(u.VMConfig, old.vmConfig) {
		return h.reconfigure(u.PluginConfig)
	}
	if h.config.Recorder != nil {
		return fmt.Errorf("%w: a host that is recorded keeps its code", ErrConfig)
	}
	p, err := h.load(ctx, slices.Clone(u.Wasm), slices.Clone(u.VMConfig))
	if err == nil {
		err = h.try(p, u.PluginConfig)
	}
	if err != nil {
		return errors.Join(err, p.close())
	}
	h.program.Store(p)
	h.plugin.Store(&u.PluginConfig)
	h.updates++
	var errs []error
	for _, w := range h.threads() {
		if err := w.renew(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", ThreadName(w.index), err))
		}
	}
	old.supersede()
	return errors.Join(errs...)
}

// renew gives the worker a virtual machine of the host's program and lets the one that it has drain.
func (w *Worker) renew() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	old := w.vm
	if err := w.boot(); err != nil {
		return err
	}
	w.old = append(w.old, old)
	w.reap()
	return nil
}

// machines are the worker's virtual machines, oldest first.
func (w *Worker) machines() []*vm {
	if len(w.old) == 0 {
		return []*vm{w.vm}
	}
	return append(slices.Clone(w.old), w.vm)
}

// drain ends the drain time of all that is not in force.
func (w *Worker) drain() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, v := range w.old {
		v.drainRoots(v.roots)
	}
	w.vm.drainRoots(w.vm.roots[:max(len(w.vm.roots)-1, 0)])
	w.reap()
}

// reap closes old virtual machines that are dead or whose plugin contexts have all ended. Not to be called within a
// callback.
func (w *Worker) reap() {
	w.old = slices.DeleteFunc(w.old, func(v *vm) bool {
		over := v.dead != nil || len(v.roots) == 0
		if over {
			w.drop(v)
		}
		return over
	})
}

// drop ends a virtual machine that the worker no longer has.
func (w *Worker) drop(v *vm) {
	w.past.add(v)
	v.close()
	v.program.release()
}
