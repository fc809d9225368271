package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// waits tells how long the worker threads of an Envoy wait for locks: it looks again and again where the kernel has put each
// thread to sleep, and a lock that is not to be had is a futex (futex(2)). A lock that is waited for by spinning is not seen here;
// it shows as CPU.
type waits struct {
	threads []string // their wchan files (proc(5))
	stop    chan struct{}
	done    chan float64
}

// waitPeriod is the time between two looks.
const waitPeriod = 200 * time.Microsecond

// watchWaits begins to look.
func watchWaits(pid int) (*waits, error) {
	names, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/comm", pid))
	if err != nil {
		return nil, err
	}
	w := &waits{stop: make(chan struct{}), done: make(chan float64, 1)}
	for _, name := range names {
		if text, err := os.ReadFile(name); err == nil && strings.HasPrefix(string(text), "wrk:worker") {
			w.threads = append(w.threads, filepath.Join(filepath.Dir(name), "wchan"))
		}
	}
	if len(w.threads) == 0 {
		return nil, fmt.Errorf("bench: process %d has no worker threads", pid)
	}
	go w.look()
	return w, nil
}

func (w *waits) look() {
	looks, waiting := 0, 0
	for every := time.NewTicker(waitPeriod); ; looks++ {
		select {
		case <-w.stop:
			every.Stop()
			w.done <- float64(waiting) / float64(max(1, looks))
			return
		case <-every.C:
		}
		for _, thread := range w.threads {
			if at, err := os.ReadFile(thread); err == nil && strings.HasPrefix(string(at), "futex") {
				waiting++
			}
		}
	}
}

// end returns how many threads waited for a lock on average.
func (w *waits) end() float64 {
	close(w.stop)
	return <-w.done
}
