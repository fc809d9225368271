package hostsim

import "errors"

var (
	// ErrTrap is wrapped by the error of every call in which the virtual machine died. A *TrapError tells where and why.
	ErrTrap = errors.New("hostsim: the virtual machine trapped")
	// ErrDeadline is wrapped beside ErrTrap when the module was stopped after Config.CallTimeout.
	ErrDeadline = errors.New("hostsim: ran longer than the call timeout")
	// ErrStack is wrapped beside ErrTrap when the module's functions called each other until the stack was exhausted.
	ErrStack = errors.New("hostsim: stack exhausted")
	// ErrMemory is wrapped beside ErrTrap when the virtual machine died after its memory was refused to grow, and means for
	// a module that does not load that it declares more memory than the limit.
	ErrMemory = errors.New("hostsim: out of memory")
	// ErrRefused means that vm_start or configure returned false.
	ErrRefused = errors.New("hostsim: the plugin refused to start")
	// ErrABI means that the module does not export one of the ABI markers, or not as the profile needs it.
	ErrABI = errors.New("hostsim: not a proxy-wasm module that this host can run")
	// ErrImports means that the module imports what the profile's gateway lacks. *ImportError names each one.
	ErrImports = errors.New("hostsim: the gateway lacks an import")
	// ErrOrder means that a part of a message came out of order: a body before its headers, headers twice, anything after
	// the end of the message.
	ErrOrder = errors.New("hostsim: message part out of order")
	// ErrStreamEnded means that a stream was used after its End.
	ErrStreamEnded = errors.New("hostsim: stream has ended")
)
