package differential

import (
	"errors"
	"fmt"
	"strings"
)

// ErrFormat is wrapped by every error about the text of an exchange.
var ErrFormat = errors.New("differential: malformed exchange")

// File is a text file of exchanges about one theme.
type File struct {
	// Name is the file's name.
	Name string
	// Prose is the text before the first exchange.
	Prose string
	// Exchanges are in the order of the file.
	Exchanges []*Exchange
}

// Parse reads a file of exchanges:
//
//	What the file is about, in any number of lines.
//
//	=== the name of an exchange
//	# What it shows.
//	config buffer_limit 100
//	probe request_headers get 0 :path
//	client headers GET /a end
//	  > request_headers stream 6 1
//	  get 0 :path = 0 /a
//	  upstream < GET /a
//	upstream headers 200 end
//	  client < 200
//
//	--- envoy-1.36: why it differs there
//	client headers GET /a end
//	  ...
//
// Lines that begin with two spaces are what the step above them caused. Steps are those of act, settings those of bootstrap.go.
func Parse(name, text string) (*File, error) {
	f := &File{Name: name}
	head, rest, _ := strings.Cut("\n"+text, "\n=== ")
	f.Prose = strings.TrimSpace(head)
	line := 1 + strings.Count(head, "\n")
	for rest != "" {
		body, next, _ := strings.Cut(rest, "\n=== ")
		e, err := parseExchange(name, line, body)
		if err != nil {
			return nil, err
		}
		f.Exchanges = append(f.Exchanges, e)
		line += 1 + strings.Count(body, "\n")
		rest = next
	}
	return f, nil
}

func parseExchange(file string, line int, text string) (*Exchange, error) {
	lines := strings.Split(text, "\n")
	e := &Exchange{File: file, Line: line, Name: lines[0], Config: map[string]string{}}
	steps := &e.Steps
	for i, l := range lines[1:] {
		fail := func(what string) error {
			return fmt.Errorf("%w: %s:%d: %s: %q", ErrFormat, file, line+i+1, what, l)
		}
		word, value, _ := strings.Cut(l, " ")
		switch {
		case l == "":
		case strings.HasPrefix(l, "  "):
			if len(*steps) == 0 {
				return nil, fail("a recorded line before the first step")
			}
			last := &(*steps)[len(*steps)-1]
			last.Caused = append(last.Caused, l[2:])
		case word == "---":
			host, reason, ok := strings.Cut(value, ": ")
			if !ok || reason == "" {
				return nil, fail("want --- HOST: REASON")
			}
			e.Deviations = append(e.Deviations, Deviation{Host: host, Reason: reason})
			steps = &e.Deviations[len(e.Deviations)-1].Steps
		case word == "#":
			e.About = append(e.About, value)
		case word == "config":
			key, v, _ := strings.Cut(value, " ")
			if !settings[key] {
				return nil, fail("no such setting")
			}
			e.Config[key] = v
		case word == "probe":
			e.Probe = append(e.Probe, value)
		case actors[word]:
			*steps = append(*steps, Step{Do: l})
		default:
			return nil, fail("want #, config, probe, a step, or two spaces before what was recorded")
		}
	}
	return e, e.sameSteps()
}

// sameSteps checks that deviations record the same steps.
func (e *Exchange) sameSteps() error {
	for _, d := range e.Deviations {
		if len(d.Steps) == 0 {
			continue // to be recorded
		}
		for i := range max(len(e.Steps), len(d.Steps)) {
			if i >= len(d.Steps) || i >= len(e.Steps) || e.Steps[i].Do != d.Steps[i].Do {
				return fmt.Errorf("%w: %s:%d: %s: the steps for %s are not those of the exchange", ErrFormat, e.File, e.Line, e.Name, d.Host)
			}
		}
	}
	return nil
}

// String is the file's text. Parse of it gives the same file.
func (f *File) String() string {
	var b strings.Builder
	b.WriteString(f.Prose + "\n")
	for _, e := range f.Exchanges {
		b.WriteString("\n=== " + e.Name + "\n")
		for _, l := range e.About {
			b.WriteString("# " + l + "\n")
		}
		for _, key := range sortedKeys(e.Config) {
			b.WriteString(strings.TrimSpace("config "+key+" "+e.Config[key]) + "\n")
		}
		for _, l := range e.Probe {
			b.WriteString("probe " + l + "\n")
		}
		b.WriteString(Text(e.Steps))
		for _, d := range e.Deviations {
			b.WriteString("\n--- " + d.Host + ": " + d.Reason + "\n" + Text(d.Steps))
		}
	}
	return b.String()
}
