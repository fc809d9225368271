package suite

import (
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// A plugin that logs without end does not fill the machine, and the report says that something is missing.
func TestLogIsBounded(t *testing.T) {
	p := &plugin{}
	p.logged(hostsim.LogEntry{Message: "short"})
	for range 5 {
		p.logged(hostsim.LogEntry{Message: strings.Repeat("x", maxLogBytes/2)})
	}
	if n := len(p.log); n != 3 || !strings.Contains(p.log[2].Message, "more than 64 MiB of log") {
		t.Errorf("%d entries", n)
	}
	p.forget(1)
	p.logged(hostsim.LogEntry{Message: "again"})
	if n := len(p.log); n != 2 || p.log[1].Message != "again" {
		t.Errorf("%d entries after it was set back", n)
	}
}
