package policytest

import (
	"errors"
	"fmt"
	"strings"
)

// ErrScript marks a script that cannot be understood.
var ErrScript = errors.New("policytest: bad script")

// Case is one conversation, from an empty gateway on.
type Case struct {
	Name string
	// Text is the transcript: the lines after the case's own, commands and
	// recorded output.
	Text string
}

// Parse splits a script into its prose header and its cases. Errors: ErrScript.
func Parse(script string) (header string, cases []Case, err error) {
	header, rest, found := strings.Cut(script, "\ncase ")
	if !found || !strings.HasPrefix(header, "# ") {
		return "", nil, fmt.Errorf("%w: want prose lines with #, then cases", ErrScript)
	}
	for block := range strings.SplitSeq(rest, "\ncase ") {
		name, text, _ := strings.Cut(block, "\n")
		cases = append(cases, Case{name, strings.TrimRight(text, "\n") + "\n"})
	}
	return strings.TrimRight(header, "\n") + "\n", cases, nil
}

// Format is the inverse of Parse.
func Format(header string, cases []Case) string {
	for _, c := range cases {
		header += "\ncase " + c.Name + "\n" + c.Text
	}
	return header
}

// Run gives the commands of the case to the target, which must be new, and
// returns the transcript as it went: equal to c.Text if the target does what was
// recorded. Errors: ErrScript, with the line.
func (c Case) Run(t Target) (transcript string, err error) {
	r := run{
		target: t, pool: "default", options: defaults(),
		members: map[string][]Replica{}, failing: map[string]bool{},
	}
	for line := range strings.Lines(c.Text) {
		command, ok := strings.CutPrefix(line, "> ")
		switch {
		case strings.HasPrefix(line, "#") || line == "\n":
			r.out.WriteString(line)
		case ok:
			r.out.WriteString(line)
			verb, args, _ := strings.Cut(strings.TrimSpace(command), " ")
			if err := r.command(verb, strings.Fields(args)); err != nil {
				return "", fmt.Errorf("%w: case %q: %q: %w", ErrScript, c.Name, strings.TrimSpace(command), err)
			}
		}
	}
	return r.out.String(), nil
}
