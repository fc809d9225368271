package main

import (
	"fmt"
	"strings"
	"testing"
)

// round is what one round of all benchmarks that ratios are taken of prints; factor makes the last one slower.
func round(factor float64) string {
	text, seen := "goos: linux\ngoarch: amd64\ncpu: some\n", map[string]bool{}
	line := func(name, unit string, value float64) {
		pkg, benchmark, _ := strings.Cut(name, ".")
		if key := name + unit; !seen[key] {
			seen[key] = true
			text += fmt.Sprintf("pkg: %s%s\nBenchmark%s-2 100 %v %s 0 B/op 0 allocs/op\n", module, pkg, benchmark, value, unit)
		}
	}
	for _, r := range ratios {
		name, unit, _ := strings.Cut(r.to, " ")
		line(name, unit, 100)
		name, unit, _ = strings.Cut(r.of, " ")
		line(name, unit, 100*factor)
	}
	return text
}

func TestRatiosAreThoseOfOneRound(t *testing.T) {
	// The second round ran on a machine ten times as slow: each ratio is still of its own round.
	slow := strings.ReplaceAll(round(2), " 100 100 ns/op", " 100 1000 ns/op")
	slow = strings.ReplaceAll(slow, " 100 200 ns/op", " 100 2000 ns/op")
	rs, err := read(strings.NewReader(round(2)+slow+round(3)), "rounds")
	if err != nil {
		t.Fatal(err)
	}
	rows, err := rs.ratios()
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range rows[:len(ratios)] {
		if name := ratios[i].name; r.Name != name || (r.Most == nil) != (ratios[i].most == 0) {
			t.Errorf("row %d is %+v, want %s", i, r, name)
		}
	}
	if r := rows[0]; r.Median != 2 || r.Low != 2 || r.High != 3 {
		t.Errorf("%+v, want the rounds' 2, 2 and 3", r)
	}
	for _, r := range rows[len(ratios):] {
		if r.Unit != "allocs/op" || r.High != 0 || *r.Most != 0 {
			t.Errorf("%+v, want no allocations", r)
		}
	}
	if n := rs.rounds(); n != 3 {
		t.Errorf("%d rounds, want 3", n)
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	text := strings.ReplaceAll(round(1), "turn=placement", "turn=other")
	rs, err := read(strings.NewReader(text), "rounds")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := rs.ratios(); err == nil || !strings.Contains(err.Error(), "turn=placement") {
		t.Errorf("%v", err)
	}
	if _, err := read(strings.NewReader("PASS\n"), "nothing"); err == nil {
		t.Error("a file without results is none")
	}
}

func TestRows(t *testing.T) {
	for _, c := range []struct {
		values []float64
		want   string
	}{
		{[]float64{3}, "3 3 3"},
		{[]float64{4, 1, 2}, "2 1 4"},
		{[]float64{4, 1, 2, 3}, "2.5 1 4"},
	} {
		if r := rowOf("a", "b", c.values); fmt.Sprint(r.Median, r.Low, r.High) != c.want {
			t.Errorf("%v: %+v", c.values, r)
		}
	}
}
