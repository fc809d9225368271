package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
)

// progress shows how far a replay has come: as a bar on a terminal, as a few lines elsewhere. Safe for concurrent use.
type progress struct {
	out      io.Writer
	name     string
	total    int
	terminal bool

	mu    sync.Mutex
	done  int
	shown int // percent
}

func newProgress(out io.Writer, name string, total int) *progress {
	p := &progress{out: out, name: name, total: max(total, 1), shown: -1, terminal: isTerminal(out)}
	p.show()
	return p
}

// step counts one more turn.
func (p *progress) step() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done++
	p.show()
}

// show draws when there is something new to see.
func (p *progress) show() {
	percent := 100 * p.done / p.total
	every := 25
	if p.terminal {
		every = 1
	}
	if percent/every == p.shown/every && p.shown >= 0 {
		return
	}
	p.shown = percent
	if !p.terminal {
		fmt.Fprintf(p.out, "%-11s  %3d%% of %d turns\n", p.name, percent, p.total)
		return
	}
	const width = 40
	bar := strings.Repeat("#", width*percent/100)
	fmt.Fprintf(p.out, "\r%-11s  [%-*s] %3d%% of %d turns", p.name, width, bar, percent, p.total)
}

// end finishes the line, however far it came.
func (p *progress) end() {
	if p.terminal {
		fmt.Fprintln(p.out)
	}
}
