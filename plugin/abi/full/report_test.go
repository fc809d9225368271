package full

import (
	"errors"
	"regexp"
	"testing"
)

type named struct{}

func (named) String() string { return "by its own method" }

type broken struct{}

func (broken) Error() string { panic("again") }

func TestReport(t *testing.T) {
	var nothing map[string]int
	cases := []struct {
		raise func()
		want  string
	}{
		{func() { panic("words") }, "words"},
		{func() { panic(errors.New("an error")) }, "an error"},
		{func() { panic(named{}) }, "by its own method"},
		{func() { panic(broken{}) }, "full.broken"},
		{func() { panic(42) }, "42"},
		{func() { panic("two\nlines") }, `two\\nlines`},
		{func() { nothing["a"] = 1 }, "assignment to entry in nil map"},
		{func() { _ = []int{}[len(nothing)] }, `runtime error: index out of range \[0\] with length 0`},
	}
	for _, c := range cases {
		var line string
		func() {
			defer func() { line = report("proxy_on_tick", recover()) }()
			c.raise()
		}()
		want := `^panic in proxy_on_tick: ` + c.want + ` \(\S+TestReport\.func\d+ at \S+report_test\.go:\d+\)$`
		if !regexp.MustCompile(want).MatchString(line) {
			t.Errorf("got %q, want %s", line, want)
		}
	}
}
