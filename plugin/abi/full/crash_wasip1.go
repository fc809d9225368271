package full

import (
	"unsafe"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi/internal/hostcall"
)

// trap ends the VM (trap_wasip1.s).
func trap()

// crash is deferred by every callback: a panic is logged in one line at level
// critical, and then the VM traps, as it does under TinyGo. Without it the panic
// would end in proc_exit, behind a stack of many lines, which older gateways lose.
func crash(callback string) {
	cause := recover()
	if cause == nil {
		return
	}
	line := report(callback, cause)
	const levelCritical = 5
	hostcall.Log(levelCritical, unsafe.Pointer(unsafe.StringData(line)), uint32(len(line)))
	trap()
}
