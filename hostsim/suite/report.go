package suite

import (
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// entryText is how reports show an entry of the log.
func entryText(e hostsim.LogEntry) string {
	return threadName(e.Worker) + " " + e.Level.String() + ": " + strings.TrimSpace(e.Message)
}
