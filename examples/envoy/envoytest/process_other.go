//go:build !linux

package envoytest

import (
	"errors"
	"os/exec"
)

// RunTied starts cmd and closes exited once it is reaped. Only Linux can tie a
// child's life to its parent's.
func RunTied(cmd *exec.Cmd, exited chan<- struct{}) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	return nil
}

// Pin is for Linux.
func Pin(pid, cpu int) error { return errors.ErrUnsupported }
