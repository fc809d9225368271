package envoytest

import (
	"os/exec"
	"runtime"
	"syscall"
	"unsafe"
)

// RunTied starts cmd so that the kernel kills it when this process dies,
// whatever kills it, and closes exited once it is reaped. The process runs on the
// given CPU, counted from 0, or anywhere if that is negative.
func RunTied(cmd *exec.Cmd, cpu int, exited chan<- struct{}) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	go func() {
		// The death signal fires when the forking THREAD ends, so that thread must
		// stay for as long as the child does.
		runtime.LockOSThread()
		if cpu >= 0 {
			// A child inherits the affinity of the thread that forks it. The thread is
			// not unlocked afterwards, so Go throws it away and the mask with it.
			if err := pin(cpu); err != nil {
				started <- err
				return
			}
		}
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(exited)
		}
	}()
	return <-started
}

// pin restricts the calling thread to one CPU.
func pin(cpu int) error {
	var mask [16]uint64 // 1024 CPUs
	mask[cpu/64] = 1 << (cpu % 64)
	_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, 0, unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
	if errno != 0 {
		return errno
	}
	return nil
}
