package suite

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// logLine is an expectation about one entry of the log.
type logLine struct {
	text   *matcher
	level  *hostsim.LogLevel
	worker *int
}

var logFields = []field[logLine]{
	{"equals", logText(0)}, {"contains", logText(1)}, {"matches", logText(2)},
	{"level", func(d *decoder, v value, l *logLine) {
		if i := d.oneOf(v, logLevels); i >= 0 {
			level := hostsim.LogLevel(i)
			l.level = &level
		}
	}},
	{"worker", func(d *decoder, v value, l *logLine) { l.worker = d.worker(v) }},
}

func logText(kind int) func(d *decoder, v value, l *logLine) {
	return func(d *decoder, v value, l *logLine) {
		if l.text != nil {
			d.fail(v.place, "two comparisons; allowed: one of equals, contains, matches")
			return
		}
		l.text = &matcher{place: v.place}
		matcherFields[kind].read(d, v, l.text)
	}
}

// worker reads a worker's number, or main for the thread without requests.
func (d *decoder) worker(v value) *int {
	if f, ok := d.follow(v); ok && f.node.Kind == yaml.ScalarNode && f.node.Value == "main" {
		n := hostsim.MainThread
		return &n
	}
	n := new(int)
	d.count(v, 0, 255, n)
	return n
}

func (d *decoder) logLines(v value) []*logLine {
	var list []*logLine
	for _, item := range d.items(v, "a list of lines") {
		l := &logLine{}
		f, ok := d.follow(item)
		switch {
		case !ok:
			continue
		case f.node.Kind == yaml.MappingNode:
			n := len(d.problems)
			object(d, item, logFields, l)
			if l.text == nil && l.level == nil && !d.failed(n) {
				d.fail(item.place, "nothing to look for; allowed: equals, contains or matches, and level, worker")
			}
		default:
			if s, ok := d.scalar(item, "text, or what is known of the line,"); ok {
				l.text = &matcher{exact: &s}
			}
		}
		if l.text == nil {
			l.text = &matcher{any: true}
		}
		l.text.place = item.place
		list = append(list, l)
	}
	return list
}

func (l *logLine) holds(e hostsim.LogEntry) bool {
	return (l.level == nil || *l.level == e.Level) && (l.worker == nil || *l.worker == e.Worker) && l.text.holds([]string{e.Message})
}

func (l *logLine) String() string {
	s := ""
	if l.worker != nil {
		s = hostsim.ThreadName(*l.worker) + " "
	}
	if l.level != nil {
		s += l.level.String() + ": "
	}
	return s + l.text.String()
}

// entryText is how reports show an entry of the log.
func entryText(e hostsim.LogEntry) string {
	return hostsim.ThreadName(e.Worker) + " " + e.Level.String() + ": " + strings.TrimSpace(e.Message)
}

func (a *attempt) checkLog(e *expectation) {
	lines := a.log[a.mark.log:]
	for _, want := range e.log {
		if !slices.ContainsFunc(lines, want.holds) {
			a.fail(want.text.place, diff(want.String(), ""), "no such line was logged")
		}
	}
	for _, bad := range e.noLog {
		if i := slices.IndexFunc(lines, bad.holds); i >= 0 {
			a.fail(bad.text.place, diff("", entryText(lines[i])), "a line that should not be there was logged")
		}
	}
}
