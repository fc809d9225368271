package differential

import (
	"errors"
	"strings"
	"testing"
)

const small = `About things.

=== one thing
# What it shows.
config buffer_limit 100
probe request_headers return 1
client headers GET /a end
  > request_headers stream 5 1
client close

--- envoy-1.36: it is older
client headers GET /a end
client close
  client < closed

=== another
start
`

func TestParse(t *testing.T) {
	f, err := Parse("dir/things.txt", small)
	if err != nil {
		t.Fatal(err)
	}
	if got := f.String(); got != small {
		t.Errorf("written as\n%s", got)
	}
	e := f.Exchanges[0]
	if e.ID() != "things.one-thing" || e.Line != 3 || f.Exchanges[1].Line != 16 || e.Config["buffer_limit"] != "100" {
		t.Errorf("%+v, %+v", e, f.Exchanges[1])
	}
	for gateway, last := range map[string]int{"envoy-1.40": 0, "envoy-1.36": 1} {
		for _, sim := range []bool{false, true} {
			if got := e.Recording(gateway, sim)[1].Caused; len(got) != last {
				t.Errorf("%s, sim %v: %q", gateway, sim, got)
			}
		}
	}
}

// A deviation of hostsim is not one of Envoy.
func TestDeviationOfHostsim(t *testing.T) {
	f, err := Parse("x.txt", strings.ReplaceAll(small, "--- envoy-1.36", "--- hostsim envoy-1.40"))
	if err != nil {
		t.Fatal(err)
	}
	e := f.Exchanges[0]
	if e.Deviation("envoy-1.40", false) != nil || e.Deviation("envoy-1.36", true) != nil || e.Deviation("envoy-1.40", true) == nil {
		t.Errorf("%+v", e.Deviations)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"config buffer_limit", "config limit", "x.txt:5: no such setting"},
		{"probe request", "prob request", "x.txt:6: want #, config"},
		{"client headers GET /a end\n  >", "  >", "x.txt:7: a recorded line before the first step"},
		{": it is older", "", "x.txt:11: want --- HOST: REASON"},
		{"client close\n  client", "client reset\n  client", "x.txt:3: one thing: the steps for envoy-1.36"},
	} {
		_, err := Parse("x.txt", strings.Replace(small, c.from, c.to, 1))
		if !errors.Is(err, ErrFormat) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, want %s", c.to, err, c.want)
		}
	}
}
