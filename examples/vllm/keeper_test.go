//go:build vllm

package vllm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// An engine is several processes, and the one that computes outlives the one that was started. So that none is left
// over, however this test ends, each engine has a keeper: this binary once more, in a session of its own, so that no
// Ctrl-C reaches it. When its stdin ends, and so when the test dies in any way, it ends the engine's process group.
const keeperEnv = "PINWHEEL_TEST_KEEPER"

// kept is a running program with all that it has started.
type kept struct {
	group  int           // its processes' group
	exited chan struct{} // closed when all of the group have ended
}

// keepRunning starts a program, env coming on top of this process's own, that writes to log. The test's end ends it.
func keepRunning(t *testing.T, log io.Writer, env []string, program ...string) *kept {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, program...)
	cmd.Env = append(append(os.Environ(), keeperEnv+"=1"), env...)
	cmd.Stderr = log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	k := &kept{exited: make(chan struct{})}
	line, readErr := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		if err := cmd.Wait(); err != nil {
			fmt.Fprintf(log, "keeper: %v\n", err)
		}
		close(k.exited)
	}()
	t.Cleanup(func() {
		stdin.Close()
		<-k.exited
		if err := syscall.Kill(-k.group, 0); err != syscall.ESRCH {
			t.Errorf("process group %d of %s is still there: %v", k.group, program[0], err)
		}
	})
	if k.group, err = strconv.Atoi(strings.TrimSpace(line)); err != nil {
		t.Fatalf("%s did not start: %v, %v", program[0], readErr, err)
	}
	return k
}

// crash kills all of it at once, as a machine that fails does, and waits until they are gone.
func (k *kept) crash(t *testing.T) {
	t.Helper()
	if err := syscall.Kill(-k.group, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	<-k.exited
}

// Nothing is left of a program of which one process ignores SIGTERM, and none is its child any more: whether the test
// ends, in which case keepRunning looks, or the program is killed.
func TestNothingIsLeftOver(t *testing.T) {
	const program = `(trap "" TERM; exec sleep 1000) & echo two; wait`
	for _, how := range []string{"the test ends", "the leader is killed", "all are killed"} {
		t.Run(how, func(t *testing.T) {
			log := &envoytest.Log{}
			k := keepRunning(t, log, nil, "sh", "-c", program)
			eventually(t, "two processes", func() string {
				if log.Len() == 0 {
					return "one"
				}
				return ""
			})
			switch how {
			case "the leader is killed":
				if err := syscall.Kill(k.group, syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				<-k.exited
			case "all are killed":
				k.crash(t)
			}
		})
	}
}

// patience is how long an engine may take to end by itself.
const patience = 30 * time.Second

func TestMain(m *testing.M) {
	if os.Getenv(keeperEnv) != "" {
		if err := keep(os.Args[1:]); err != nil {
			fmt.Fprintln(os.Stderr, "keeper:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// keep runs a program as the leader of a process group, prints the group's number, and ends the group when the program
// or stdin has ended.
func keep(program []string) error {
	// Caught and dropped: what is ignored would be ignored by the program too.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP)
	os.Unsetenv(keeperEnv)
	// The orphans of the group become this process's children, to be waited for.
	const prSetChildSubreaper = 36
	if _, _, errno := syscall.RawSyscall(syscall.SYS_PRCTL, prSetChildSubreaper, 1, 0); errno != 0 {
		return errno
	}
	cmd := exec.Command(program[0], program[1:]...)
	cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	group := cmd.Process.Pid
	fmt.Println(group)
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		_ = cmd.Process.Signal(syscall.SIGTERM) // the leader ends the others in good order
		select {
		case <-ended:
		case <-time.After(patience):
		}
		_ = syscall.Kill(-group, syscall.SIGKILL)
	}()
	<-ended
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		// Whoever outlived the leader has nothing to finish.
		if err := syscall.Kill(-group, syscall.SIGKILL); errors.Is(err, syscall.ESRCH) {
			return nil
		}
		_, _ = syscall.Wait4(-group, nil, syscall.WNOHANG, nil)
		if time.Now().After(deadline) {
			return fmt.Errorf("process group %d does not end", group)
		}
	}
}
