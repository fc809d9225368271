package hostsim

import (
	"context"
	"sync"

	"github.com/tetratelabs/wazero"
)

// program is a module as one host runs it: its code, compiled and linked, with the configuration of its virtual machines.
// A host has one, and while an update drains, earlier ones beside it. It is Envoy's base virtual machine, which runs
// nothing itself.
type program struct {
	runtime  wazero.Runtime
	compiled wazero.CompiledModule
	globals  []int  // indexes of those that snapshots set
	abi      string // such as "0.2.1"
	bindings []*binding
	wasm     []byte
	vmConfig []byte

	mu         sync.Mutex
	users      int  // virtual machines of workers
	superseded bool // no further virtual machine will run it
}

// use counts a worker's virtual machine.
func (p *program) use() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users++
}

// release is the end of a worker's virtual machine.
func (p *program) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.users--
	p.free()
}

// supersede says that the program is no longer the host's.
func (p *program) supersede() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.superseded = true
	p.free()
}

// free gives the memory of a program back that nobody runs.
func (p *program) free() {
	if p.superseded && p.users == 0 {
		_ = p.close()
	}
}

func (p *program) close() error {
	if p == nil || p.runtime == nil {
		return nil
	}
	return p.runtime.Close(context.Background())
}
