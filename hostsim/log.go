package hostsim

import (
	"fmt"
	"sync"
	"time"
)

// LogLevel orders log entries. Source: proxy-wasm specification 0.2.1, proxy_log_level_t.
type LogLevel uint32

const (
	LogTrace    LogLevel = 0
	LogDebug    LogLevel = 1
	LogInfo     LogLevel = 2
	LogWarn     LogLevel = 3
	LogError    LogLevel = 4
	LogCritical LogLevel = 5
)

var levelNames = [...]string{"trace", "debug", "info", "warn", "error", "critical"}

// String returns the level's name in lower case.
func (l LogLevel) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("LogLevel(%d)", uint32(l))
}

// LogEntry is one line from the plugin, from its standard output (LogInfo) or standard error (LogError), or from the
// host about it.
type LogEntry struct {
	// Time is the host clock's.
	Time time.Time
	// Worker is the worker's index; MainThread and Canary name the other two virtual machines.
	Worker int
	// Level is never below Config.LogLevel.
	Level LogLevel
	// Message is as written, which may be any bytes, without a final newline.
	Message string
}

const (
	// MainThread is the index of the main thread's virtual machine, which starts and ticks but serves no requests.
	MainThread = -1
	// Canary is the index of the virtual machine that tries a configuration and is thrown away.
	Canary = -2
)

// maxLogBytes bounds the messages that a host keeps, together, so that a plugin with much to say does not exhaust the
// machine. The last entry is always kept.
const maxLogBytes = 64 << 20

// logbook keeps the last entries and feeds the sink, one at a time.
type logbook struct {
	mu      sync.Mutex
	entries []LogEntry
	first   int // index of the oldest entry
	bytes   int // of their messages
	limit   int
	sink    func(LogEntry)
}

func (b *logbook) add(e LogEntry) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.entries = append(b.entries, e)
	b.bytes += len(e.Message)
	for kept := len(b.entries) - b.first; kept > b.limit || kept > 1 && b.bytes > maxLogBytes; kept-- {
		b.bytes -= len(b.entries[b.first].Message)
		b.entries[b.first] = LogEntry{}
		b.first++
	}
	if b.first > 64 && b.first > len(b.entries)/2 {
		kept := copy(b.entries, b.entries[b.first:])
		clear(b.entries[kept:])
		b.entries, b.first = b.entries[:kept], 0
	}
	if b.sink != nil {
		b.sink(e)
	}
}

func (b *logbook) list() []LogEntry {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append(make([]LogEntry, 0, len(b.entries)-b.first), b.entries[b.first:]...)
}
