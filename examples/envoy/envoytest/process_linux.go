package envoytest

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"unsafe"
)

// RunTied starts cmd so that the kernel kills it when this process dies,
// whatever kills it, and closes exited once it is reaped.
func RunTied(cmd *exec.Cmd, exited chan<- struct{}) error {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	started := make(chan error)
	go func() {
		// The death signal fires when the forking THREAD ends, so that thread must
		// stay for as long as the child does.
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err == nil {
			_ = cmd.Wait()
			close(exited)
		}
	}()
	return <-started
}

// Pin restricts all present threads of a process, and those that they will
// start, to one CPU, counted from 0.
func Pin(pid, cpu int) error {
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid))
	if err != nil || len(tasks) == 0 {
		return fmt.Errorf("envoytest: no threads of process %d", pid)
	}
	var mask [16]uint64 // 1024 CPUs
	mask[cpu/64] = 1 << (cpu % 64)
	for _, task := range tasks {
		tid, err := strconv.Atoi(filepath.Base(task))
		if err != nil {
			return err
		}
		_, _, errno := syscall.RawSyscall(syscall.SYS_SCHED_SETAFFINITY, uintptr(tid), unsafe.Sizeof(mask), uintptr(unsafe.Pointer(&mask)))
		if errno != 0 && errno != syscall.ESRCH { // a thread may just have ended
			return fmt.Errorf("envoytest: pinning process %d to CPU %d: %w", pid, cpu, errno)
		}
	}
	return nil
}
