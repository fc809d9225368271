package envoytest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// ResidentBytes is a process's resident set. Linux only.
func ResidentBytes(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "VmRSS:"); ok {
			kb, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("envoytest: no VmRSS of process %d", pid)
}

// CPUTime is what all threads of a process have run so far, from the
// scheduler's own nanosecond counter. Linux only.
func CPUTime(pid int) (time.Duration, error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(files) == 0 {
		return 0, fmt.Errorf("envoytest: no schedstat of process %d; that needs Linux", pid)
	}
	var sum time.Duration
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			return 0, err
		}
		ns, err := strconv.ParseInt(strings.Fields(string(text) + " x")[0], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("envoytest: %s: %w", f, err)
		}
		sum += time.Duration(ns)
	}
	return sum, nil
}
