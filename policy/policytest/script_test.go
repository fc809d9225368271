package policytest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
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
		"options timeout=2", "replicas ab", "replicas a*many", "policy", "policy a b", "options load_factor=x",
		"prompt s1", "drain", "drain ab", "undrain", "prompt s1 sys", "prompt s1 sys*-1", "tally every=soon s1", "fail", "ok ab", "served s1", "served s1 ab", "together", "finish",
	} {
		if _, err := (Case{"x", "> " + command + "\n"}).Run(&fixed{}); !errors.Is(err, ErrScript) {
			t.Errorf("%q: %v", command, err)
		}
	}
}

func TestRunSetsWhatScriptsVary(t *testing.T) {
	c := Case{"x", "> policy random\n> options cooldown=3s balance_abs=5\n> replicas a b\n> options load_factor=0\n" +
		"> fail b\n> tally every=2s s1..s3\n> prompt s4 sys*10 x*3\n> served s7 c\n> begin s5\n> end s5\n> ok b\n> drain c\n> undrain c\n> reset\n> turn s6\n"}
	target := &fixed{}
	got, err := c.Run(target)
	if want := "3 placed b (fails)\n"; err != nil || !strings.Contains(got, want) {
		t.Errorf("%v, got\n%s\nwant %q in it", err, got, want)
	}
	if want := "s5 placed b (fails)\n> end s5\n> ok b\n> drain c\n> undrain c\n> reset\n> turn s6\ns6 placed b\n"; !strings.HasSuffix(got, want) {
		t.Errorf("got\n%s\nwant %q at its end", got, want)
	}
	if o := target.options; o.Policy != "random" || o.Cooldown != 3*time.Second || o.BalanceAbs != 5 || o.LoadFactor != 0 || o.Failures != 3 {
		t.Errorf("options %+v", o)
	}
	if want := []string{"fail b", "prompt sys sys syx x", "served by 10.0.0.3:8000", "end s5", "ok b",
		"drain 10.0.0.3:8000 true", "drain 10.0.0.3:8000 false", "reset default"}; !slices.Equal(target.told, want) || target.passed != 6*time.Second {
		t.Errorf("told %q, %v passed", target.told, target.passed)
	}
}

// fixed is a target that sends every session to b and remembers what it was told.
type fixed struct {
	members []Replica
	options Options
	ids     []string
	told    []string
	passed  time.Duration
}

func (f *fixed) Configure(_ string, o Options, members []Replica) { f.options, f.members = o, members }
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
func (f *fixed) Prompt(pool, id, prompt string) Decision {
	f.told = append(f.told, "prompt "+prompt)
	return f.Turn(pool, id)
}
func (f *fixed) Served(pool, id, address string) Decision {
	f.told = append(f.told, "served by "+address)
	return f.Turn(pool, id)
}
func (f *fixed) Begin(pool, id string) Decision { return f.Turn(pool, id) }
func (f *fixed) End(_, id string)               { f.told = append(f.told, "end "+id) }
func (f *fixed) Answer(_, address string, well bool) {
	f.told = append(f.told, map[bool]string{true: "ok ", false: "fail "}[well]+map[bool]string{true: "b"}[address == Address("b")])
}
func (f *fixed) Drain(_, address string, drained bool) {
	f.told = append(f.told, fmt.Sprint("drain ", address, " ", drained))
}
func (f *fixed) Reset(pool string)                       { f.told = append(f.told, "reset "+pool) }
func (f *fixed) Keyless(string) Decision                 { return Decision{Reason: "keyless"} }
func (f *fixed) Finish(string, string)                   {}
func (f *fixed) Advance(d time.Duration)                 { f.passed += d }
func (f *fixed) Sweep()                                  {}
func (f *fixed) Open(_ string, addresses []string) []int { return make([]int, len(addresses)) }
