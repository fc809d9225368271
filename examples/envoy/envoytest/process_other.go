//go:build !linux

package envoytest

import "os/exec"

// RunTied starts cmd and closes exited once it is reaped. Only Linux can tie a
// child's life to its parent's, and only there is cpu honoured.
func RunTied(cmd *exec.Cmd, _ int, exited chan<- struct{}) error {
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		_ = cmd.Wait()
		close(exited)
	}()
	return nil
}
