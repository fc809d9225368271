package suite

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// ErrInvalid is wrapped by every error about a suite that cannot be meant as it is written.
var ErrInvalid = errors.New("suite: invalid suite")

// Problem is one mistake in a suite's text, or one expectation that did not hold.
type Problem struct {
	// File is the suite's path as it was given.
	File string `json:"file"`
	// Line and Column count from 1; 0 where the parser of YAML does not tell.
	Line   int `json:"line"`
	Column int `json:"column"`
	// Path leads to the key, such as cases[2].request; empty at the top.
	Path string `json:"path"`
	// Text says what is wrong and what is allowed, or what was not as expected.
	Text string `json:"text"`
	// Diff shows what was expected (lines with -) and what came (lines with +); empty for mistakes.
	Diff string `json:"diff,omitempty"`
}

// String is file:line:column: path: text.
func (p Problem) String() string {
	var b strings.Builder
	b.WriteString(p.File)
	if p.Line > 0 {
		fmt.Fprintf(&b, ":%d:%d", p.Line, p.Column)
	}
	b.WriteString(": ")
	if p.Path != "" {
		b.WriteString(p.Path + ": ")
	}
	b.WriteString(p.Text)
	return b.String()
}

// inOrder sorts problems by their place in the text.
func inOrder(list []Problem) {
	slices.SortStableFunc(list, func(p, q Problem) int { return cmp.Or(p.Line-q.Line, p.Column-q.Column) })
}

// Invalid is every mistake of one suite, in the order of the text. It unwraps to ErrInvalid.
type Invalid struct{ Problems []Problem }

// Error has one line a mistake, 100 of them at most.
func (e *Invalid) Error() string {
	const most = 100
	var lines []string
	for _, p := range e.Problems[:min(len(e.Problems), most)] {
		lines = append(lines, p.String())
	}
	if more := len(e.Problems) - most; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(lines, "\n")
}

// Unwrap returns ErrInvalid.
func (e *Invalid) Unwrap() error { return ErrInvalid }
