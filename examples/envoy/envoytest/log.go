package envoytest

import (
	"bytes"
	"strings"
	"sync"
)

// Log collects the output of a process. The zero value is empty and ready; all
// methods may be called by several goroutines.
type Log struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write appends p; it never fails.
func (l *Log) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// Len is the number of bytes so far, a mark for Since.
func (l *Log) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Len()
}

// Since returns what was written after mark, a former Len.
func (l *Log) Since(mark int) string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return string(l.text.Bytes()[mark:])
}

// Tail returns the last n lines.
func (l *Log) Tail(n int) string { return lastLines(l.Since(0), n) }

func lastLines(text string, n int) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	return strings.Join(lines[max(0, len(lines)-n):], "\n")
}
