package main

import (
	"flag"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/grafana/grafana-foundation-sdk/go/cog/plugins"
	"github.com/grafana/grafana-foundation-sdk/go/dashboard"
)

var update = flag.Bool("update", false, "write pinwheel.json and docs/dashboard.png anew")

// committed is pinwheel.json as far as tests look at it.
type committed struct {
	Panels []struct {
		ID      int
		Type    string
		Title   string
		Targets []struct{ Expr string }
	}
	Templating struct {
		List []struct{ Name, Type, Query string }
	}
}

func load(t *testing.T, to any) string {
	t.Helper()
	text, err := os.ReadFile("pinwheel.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := unmarshal(string(text), to); err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDashboardIsWhatTheProgramWrites(t *testing.T) {
	want, err := dashboardJSON()
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("pinwheel.json", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got := load(t, &committed{}); got != string(want) {
		t.Error("pinwheel.json differs from what the program writes: go run . > pinwheel.json")
	}
}

// Grafana's own types know every field of the dashboard, panels' options and queries included.
func TestDashboardIsGrafanas(t *testing.T) {
	plugins.RegisterDefaultPlugins()
	text := load(t, &committed{})
	// v0.0.22 gives an empty list of errors, which is not nil, for each panel that is in order.
	problems := func(text string) string {
		var d dashboard.Dashboard
		if err := d.UnmarshalJSONStrict([]byte(text)); err != nil && err.Error() != "" {
			return err.Error()
		}
		if err := d.Validate(); err != nil {
			return err.Error()
		}
		return ""
	}
	if got := problems(text); got != "" {
		t.Error(got)
	}
	for _, name := range []string{"legendFormat", "graphMode", "fillOpacity", "gridPos", "graphTooltip", "includeAll"} {
		if got := problems(strings.Replace(text, `"`+name+`"`, `"`+name+`s"`, 1)); !strings.Contains(got, name+"s") {
			t.Errorf("the misspelt %ss was accepted: %q", name, got)
		}
	}
}

func TestDashboardIsInOrder(t *testing.T) {
	var d committed
	load(t, &d)
	var names []string
	for _, v := range d.Templating.List {
		names = append(names, v.Name)
	}
	ids, titles := map[int]bool{}, map[string]bool{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID == 0 {
			t.Errorf("%s has the id %d, which is none or another's", p.Title, p.ID)
		}
		ids[p.ID], titles[p.Title] = true, true
		if p.Type != "row" && len(p.Targets) == 0 {
			t.Errorf("%s asks nothing", p.Title)
		}
		for _, q := range p.Targets {
			if strings.Contains(q.Expr, "%") {
				t.Errorf("%s: %s has a selector that is none", p.Title, q.Expr)
			}
			for _, m := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(q.Expr, -1) {
				if m[1] != "__rate_interval" && !slices.Contains(names, m[1]) {
					t.Errorf("%s: no variable %s", p.Title, m[0])
				}
			}
		}
	}
	if len(d.Panels) < 25 {
		t.Errorf("%d panels", len(d.Panels))
	}
}

// promtool finds configurations and rules in order, and the rules do what rules_test.yml says of each alert.
func TestRules(t *testing.T) {
	promtool := tool(t, "promtool", "prometheus")
	for _, args := range [][]string{
		{"check", "config", "prometheus.yml"},
		{"check", "rules", "--lint-fatal", "rules.yml"}, {"test", "rules", "rules_test.yml"},
	} {
		if out, err := exec.Command(promtool, args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
}

var (
	alert   = regexp.MustCompile(`(?m)^  - alert: (\w+)$`)
	runbook = regexp.MustCompile(`(?m)^      runbook_url: (\S+)#(\S+)$`)
	record  = regexp.MustCompile(`(?m)^  - record: (\S+)$`)
)

// The panels that docs/operations.md tells to look at are on the dashboard.
func TestPanelsOfThePageAreThere(t *testing.T) {
	operations, err := os.ReadFile(root + "/docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	board, err := os.ReadFile("pinwheel.json")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(operations), "\n| question | panel |")
	table, _, _ = strings.Cut(table, "\n\n")
	var names []string
	for _, row := range regexp.MustCompile(`(?m)^\| [^|]+\? \| ([^|]+) \|`).FindAllStringSubmatch(table, -1) {
		names = append(names, strings.Split(row[1], "; ")...)
	}
	for _, m := range regexp.MustCompile("(?:[Pp]anel|at a) `([^`]+)`").FindAllStringSubmatch(string(operations), -1) {
		names = append(names, m[1])
	}
	if len(names) < 12 {
		t.Errorf("found %q only", names)
	}
	for _, name := range names {
		if !strings.Contains(string(board), `"title": "`+name) {
			t.Errorf("no panel is called %s", name)
		}
	}
}

// Each alert has a unit test, and a section of the page that its link leads to.
func TestAlertsAreExplained(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	rules, tests, operations := read("rules.yml"), read("rules_test.yml"), read(root+"/docs/operations.md")
	alerts, links := alert.FindAllStringSubmatch(rules, -1), runbook.FindAllStringSubmatch(rules, -1)
	if len(alerts) < 10 || len(alerts) != len(links) {
		t.Fatalf("%d alerts, %d links", len(alerts), len(links))
	}
	for i, a := range alerts {
		if links[i][1] != page || links[i][2] != strings.ToLower(a[1]) {
			t.Errorf("%s links to %s", a[1], links[i][0])
		}
		if !strings.Contains(operations, "\n### "+a[1]+"\n") {
			t.Errorf("docs/operations.md has no section on %s", a[1])
		}
		if !strings.Contains(tests, `alertname="`+a[1]+`", alertstate="firing"`) {
			t.Errorf("rules_test.yml does not fire %s", a[1])
		}
	}
	for _, r := range regexp.MustCompile(`(?m)^### (Pinwheel\w+)$`).FindAllStringSubmatch(operations, -1) {
		if !strings.Contains(rules, "alert: "+r[1]+"\n") {
			t.Errorf("docs/operations.md explains %s, which is no alert", r[1])
		}
	}
}
