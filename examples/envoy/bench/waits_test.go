package main

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

// A process whose threads have other names has no workers, and one without threads is none.
func TestWaitsKnowWorkers(t *testing.T) {
	if _, err := watchWaits(os.Getpid()); err == nil {
		t.Error("this process has Envoy's worker threads")
	}
	if _, err := watchWaits(1 << 30); err == nil {
		t.Error("a process that is not there has worker threads")
	}
}

// A thread that waits for a lock is seen to, as long as it does.
func TestWaitsSeeALock(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("needs Python for a thread that waits for a lock: ", err)
	}
	// prctl(PR_SET_NAME) names the thread as Envoy does.
	c := exec.Command("python3", "-c", `
import ctypes, threading
held = threading.Lock()
held.acquire()
def wait():
    ctypes.CDLL(None).prctl(15, b"wrk:worker_0", 0, 0, 0)
    print(flush=True)
    held.acquire()
threading.Thread(target=wait, daemon=True).start()
input()`)
	in, err := c.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer c.Wait()
	defer in.Close()
	if _, err := out.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	w, err := watchWaits(c.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(500 * time.Millisecond)
	if got := w.end(); got < 0.5 || got > 1 {
		t.Errorf("%.2f threads waited, want one all the time", got)
	}
}
