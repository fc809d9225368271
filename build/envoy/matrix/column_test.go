package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

const events = `{"Action":"start"}
{"Action":"run","Test":"TestA"}
{"Action":"run","Test":"TestA/1.40.0"}
{"Action":"attr","Test":"TestA/1.40.0","Key":"own-seconds","Value":"2.5"}
{"Action":"output","Test":"TestA/1.40.0","Output":"nobody wants to read this\n"}
{"Action":"pass","Test":"TestA/1.40.0","Elapsed":70}
{"Action":"pass","Test":"TestA","Elapsed":0}
{"Action":"output","Test":"TestB","Output":"what went wrong\n"}
{"Action":"fail","Test":"TestB","Elapsed":3}
{"Action":"skip","Test":"TestC","Elapsed":0}
{"Action":"pass","Test":"TestE","Elapsed":1}
no JSON
{"ImportPath":"x","Action":"build-output","Output":"does not compile\n"}
{"ImportPath":"x","Action":"build-fail"}
{"Action":"fail","Elapsed":9}
`

// Failing, skipped and missing tests are failures, in the table and for the exit code.
func TestTable(t *testing.T) {
	groups := []group{{"one", []string{"TestA"}}, {"two", []string{"TestA", "TestB"}}, {"three", []string{"TestC"}}, {"four", []string{"TestD"}}, {"five", []string{"TestE"}}}
	var shown strings.Builder
	c, err := read("1.40.0", strings.NewReader(events), &shown)
	if err != nil {
		t.Fatal(err)
	}
	c.took, c.failed = 80*time.Second, true
	want := `tests         1.40.0
one           pass 1/1 2s
two           FAIL 1/2 6s
three         FAIL 0/1 0s
four          FAIL 0/1 0s
five          pass 1/1 1s
all, elapsed  FAIL 3/6 80s
`
	if got := table(groups, []*column{c}); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if said := shown.String(); said != "what went wrong\nno JSON\ndoes not compile\n" {
		t.Errorf("shown: %q", said)
	}
	for n, g := range groups {
		alone := column{passed: c.passed}
		if want := n == 0 || n == 4; alone.whole(groups[n:n+1]) != want {
			t.Errorf("%s is whole: %v", g.name, !want)
		}
	}
	if c.whole(groups[:1]) {
		t.Error("a run that failed is whole")
	}
}

// The groups hold every test of the package that runs.
func TestGroups(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("../../..", tests, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	groups, err := groupsOf(files)
	if err != nil {
		t.Fatal(err)
	}
	grouped, n := 0, 0
	for _, g := range groups {
		grouped += len(g.tests)
	}
	for _, f := range files {
		text, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		n += strings.Count(string(text), "\nfunc Test")
	}
	if n--; n < 50 || grouped != n { // all but TestMain
		t.Errorf("%d tests in groups, %d in files", grouped, n)
	}
}
