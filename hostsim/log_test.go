package hostsim

import (
	"strconv"
	"strings"
	"testing"
)

func TestLogbookKeepsTheLast(t *testing.T) {
	for _, limit := range []int{1, 3, 100, 1000} {
		b := logbook{limit: limit}
		for i := range 777 {
			b.add(LogEntry{Message: strconv.Itoa(i)})
			list := b.list()
			if first := max(0, i+1-limit); len(list) != i+1-first || list[0].Message != strconv.Itoa(first) || list[len(list)-1].Message != strconv.Itoa(i) {
				t.Fatalf("limit %d, after %d: %d entries from %v", limit, i, len(list), list[0])
			}
		}
		if len(b.entries) > 2*limit+200 {
			t.Errorf("limit %d: %d entries in memory", limit, len(b.entries))
		}
	}
}

// Messages of a plugin that writes without end do not fill the machine.
func TestLogbookBoundsBytes(t *testing.T) {
	b := logbook{limit: DefaultLogLimit}
	long := strings.Repeat("x", maxLogBytes/4)
	for range 9 {
		b.add(LogEntry{Message: long})
	}
	if n := len(b.list()); n != 4 || b.bytes != 4*len(long) {
		t.Errorf("%d entries, %d bytes", n, b.bytes)
	}
	b.add(LogEntry{Message: strings.Repeat(long, 5)})
	b.add(LogEntry{Message: "last"})
	if list := b.list(); len(list) != 1 || list[0].Message != "last" {
		t.Errorf("%d entries after one over the bound", len(list))
	}
}
