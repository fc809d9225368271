package policytest

import (
	"errors"
	"slices"
	"testing"
	"time"
)

func TestParseAndFormatAreInverse(t *testing.T) {
	const script = "# Prose.\n# More.\n\ncase one\n> replicas a\n\n# why\n> open\na 0\n\ncase two\n> open\n"
	header, cases, err := Parse(script)
	if err != nil || len(cases) != 2 || cases[1].Name != "two" {
		t.Fatalf("%q %v", cases, err)
	}
	if got := Format(header, cases); got != script {
		t.Errorf("got %q, want %q", got, script)
	}
}

func TestParseRefuses(t *testing.T) {
	for _, script := range []string{"", "# Prose only.\n", "> open\n\ncase one\n> open\n"} {
		if _, _, err := Parse(script); !errors.Is(err, ErrScript) {
			t.Errorf("%q: %v", script, err)
		}
	}
}

func TestRunReplacesTheRecordedOutput(t *testing.T) {
	c := Case{"x", "> replicas a b:unhealthy*3\n# why\n> turn s1..s2 x\nstale\n> together s9..s11\n> keyless 2\n> open\n"}
	target := &fixed{}
	got, err := c.Run(target)
	const want = "> replicas a b:unhealthy*3\n# why\n> turn s1..s2 x\ns1 placed b\ns2 placed b\nx placed b\n" +
		"> together s9..s11\n3 placed\n> keyless 2\n2 keyless -\n> open\na 0, b 0\n"
	if err != nil || got != want {
		t.Errorf("%v, got\n%s\nwant\n%s", err, got, want)
	}
	if b := target.members[1]; b != (Replica{Address("b"), "unhealthy", 3}) {
		t.Errorf("b is %+v", b)
	}
	if want := []string{"s1", "s2", "x", "s9", "s10", "s11"}; !slices.Equal(target.ids, want) {
		t.Errorf("ids %v, want %v", target.ids, want)
	}
}

func TestRunRefuses(t *testing.T) {
	for _, command := range []string{
		"", "jump", "pool", "advance", "advance soon", "keyless many", "options colour=red",
		"options timeout=2", "replicas ab", "replicas a*many",
	} {
		if _, err := (Case{"x", "> " + command + "\n"}).Run(&fixed{}); !errors.Is(err, ErrScript) {
			t.Errorf("%q: %v", command, err)
		}
	}
}

// fixed is a target that sends every session to b and remembers what it was told.
type fixed struct {
	members []Replica
	ids     []string
}

func (f *fixed) Configure(_ string, _ Options, members []Replica) { f.members = members }
func (f *fixed) Turn(_, id string) Decision {
	f.ids = append(f.ids, id)
	return Decision{Address("b"), "placed"}
}
func (f *fixed) Together(pool string, ids []string) (ds []Decision) {
	for _, id := range ids {
		ds = append(ds, f.Turn(pool, id))
	}
	return ds
}
func (f *fixed) Keyless(string) Decision                 { return Decision{Reason: "keyless"} }
func (f *fixed) Finish(string, string)                   {}
func (f *fixed) Advance(time.Duration)                   {}
func (f *fixed) Sweep()                                  {}
func (f *fixed) Open(_ string, addresses []string) []int { return make([]int, len(addresses)) }
