package hostsim

import (
	"context"
	"crypto/sha256"
	"sync"
)

// program is a module as one host runs it: code with the configuration of its virtual machines. A host has one, and while
// an update drains, earlier ones beside it. It is Envoy's base virtual machine, which runs nothing itself.
type program struct {
	*code
	wasm     []byte
	vmConfig []byte

	mu         sync.Mutex
	machines   int  // virtual machines of workers
	superseded bool // no further virtual machine will run it
	closed     bool
}

// newProgram compiles a module. It is linked by load, or by Check.
func newProgram(ctx context.Context, c *Config, wasm, vmConfig []byte, bounded bool) (*program, error) {
	key := codeKey{sum: sha256.Sum256(wasm), profile: c.Profile, cacheDir: c.CacheDir, bounded: bounded}
	code, err := key.borrow(ctx, wasm)
	if err != nil {
		return nil, err
	}
	return &program{code: code, wasm: wasm, vmConfig: vmConfig}, nil
}

// use counts a worker's virtual machine.
func (p *program) use() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.machines++
}

// release is the end of a worker's virtual machine.
func (p *program) release() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.machines--
	p.free()
}

// supersede says that the program is no longer the host's.
func (p *program) supersede() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.superseded = true
	p.free()
}

// free gives the code of a program back that nobody runs.
func (p *program) free() {
	if p.superseded && p.machines == 0 {
		_ = p.giveBackOnce()
	}
}

// close gives the code back, when no virtual machine runs it any more. Nil has none.
func (p *program) close() error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.giveBackOnce()
}

func (p *program) giveBackOnce() error {
	if p.closed {
		return nil
	}
	p.closed = true
	return p.code.giveBack()
}
