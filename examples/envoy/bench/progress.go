package main

import (
	"fmt"
	"io"
	"time"
)

// progress tells a person how far a run is. It prints a line when something begins and then at most one in three seconds.
type progress struct {
	out   io.Writer
	name  string
	done  int // steps of the present loop
	of    int
	since time.Time
	last  time.Time
}

// begin names what comes next.
func (p *progress) begin(name string) { p.name = name }

// say prints a line at once.
func (p *progress) say(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if p.name != "" {
		text = p.name + ": " + text
	}
	fmt.Fprintln(p.out, text)
	p.last = time.Now()
}

// loop begins a loop of so many steps of about the same length.
func (p *progress) loop(steps int) {
	p.done, p.of, p.since = 0, steps, time.Now()
}

// step counts one.
func (p *progress) step(what string) {
	p.done++
	if p.done < p.of && time.Since(p.last) >= 3*time.Second {
		spent := time.Since(p.since)
		left := spent / time.Duration(p.done) * time.Duration(p.of-p.done)
		p.say("%s, %d of %d; %v, about %v to go", what, p.done, p.of, spent.Round(time.Second), left.Round(time.Second))
	}
}
