package main

import (
	"bytes"
	"flag"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replay/report"
)

var (
	replayAll    = flag.Bool("replay", false, "run every command of docs/replay.md, minutes in all, and hold its tables to them")
	replayUpdate = flag.Bool("update-replay", false, "with -replay: rewrite what docs/replay.md shows of its commands")
)

const replayPage = "docs/replay.md"

var (
	shownRun   = regexp.MustCompile("(?s)```sh\nhostsim (replay [^`#]*?)\n```\n\n```text\n(.*?)```")
	labelled   = regexp.MustCompile(`(?m)^hostsim replay (.*?) +# (.+)$`)
	tableOf    = regexp.MustCompile(`(?s)(<!-- (\w+): make replay UPDATE=-update-replay -->\n)(.*?)(<!-- end -->\n)`)
	decisionsS = regexp.MustCompile(`(?m)^ .* decisions\npolicy.* /s\n(\S.*\n)+`)
	lastColumn = regexp.MustCompile(`(?m) +\S+$`)
)

// The page shows what its commands print, or some lines of it. Without -replay only the first is run, by the policies in this process: what they
// decide is what the plugin decides.
func TestReplayPage(t *testing.T) {
	t.Chdir("../../..")
	text, err := os.ReadFile(replayPage)
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	shown := shownRun.FindAllStringSubmatch(page, -1)
	if len(shown) < 2 {
		t.Fatalf("%s shows %d commands with their output", replayPage, len(shown))
	}
	for i, m := range shown {
		args := strings.Fields(strings.ReplaceAll(m[1], "\\\n", " "))
		if !*replayAll {
			if i > 0 {
				break
			}
			args = append(args, "--in-process")
		}
		if got := printed(t, args); m[2] == "" || !inOrder(m[2], got) {
			page = strings.Replace(page, m[0], strings.TrimSuffix(m[0], m[2]+"```")+got+"```", 1)
			if !*replayUpdate {
				t.Errorf("hostsim %s prints\n%s\nand not what the page shows of it\n%s", m[1], got, m[2])
			}
		}
	}
	if !*replayAll {
		checkRuns(t, page)
		return
	}
	runs := pageRuns(t, page)
	frontPage, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{replayPage: page, "README.md": string(frontPage)} {
		for _, m := range tableOf.FindAllStringSubmatch(text, -1) {
			if got := replayTables[m[2]](runs); got != m[3] {
				if text = strings.Replace(text, m[0], m[1]+got+m[4], 1); !*replayUpdate {
					t.Errorf("%s: the table %q is not\n%s", file, m[2], got)
				}
			}
		}
		if *replayUpdate {
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// inOrder tells whether the lines of shown are lines of text, in that order. A page may leave lines out.
func inOrder(shown, text string) bool {
	for line := range strings.Lines(shown) {
		at := strings.Index("\n"+text, "\n"+line)
		if at < 0 {
			return false
		}
		text = text[at+len(line):]
	}
	return true
}

// checkRuns finds figures that belong to no run, and tables that were never made.
func checkRuns(t *testing.T, page string) {
	t.Helper()
	labels := map[string]bool{}
	for _, m := range labelled.FindAllStringSubmatch(strings.ReplaceAll(page, "\\\n", " "), -1) {
		labels[m[2]] = true
	}
	for _, v := range validations {
		if !labels[v.run] {
			t.Errorf("%q is compared with a run that is not on the page: %q", v.what, v.run)
		}
		if !strings.Contains(page, "\n| "+v.what+" | "+v.source+" | "+v.published+" | ") {
			t.Errorf("the page lacks the row of %q; run make replay UPDATE=-update-replay", v.what)
		}
	}
	for _, m := range tableOf.FindAllStringSubmatch(page, -1) {
		if replayTables[m[2]] == nil || strings.Contains(m[3], "not run") {
			t.Errorf("the page's table %q is not made by make replay", m[2])
		}
	}
}

// printed runs hostsim and returns what it prints, without how fast this machine decided.
func printed(t *testing.T, args []string) string {
	t.Helper()
	var out bytes.Buffer
	cmd := newRoot()
	cmd.SetArgs(args)
	cmd.SetOut(&out)
	cmd.SetErr(io.Discard)
	if err := cmd.ExecuteContext(t.Context()); err != nil {
		t.Fatalf("hostsim %s: %v", strings.Join(args, " "), err)
	}
	return decisionsS.ReplaceAllStringFunc(out.String(), func(table string) string { return lastColumn.ReplaceAllString(table, "") })
}

// pageRun is a command of the page with a label: `hostsim replay ... # label`.
type pageRun struct {
	label  string
	result *replay.Result
}

func pageRuns(t *testing.T, page string) (runs []pageRun) {
	for _, m := range labelled.FindAllStringSubmatch(strings.ReplaceAll(page, "\\\n", " "), -1) {
		fmt.Printf("\nhostsim replay %s\n\n", strings.Join(strings.Fields(m[1]), " "))
		r := replayed(t, m[1])
		if err := report.Table(os.Stdout, r); err != nil {
			t.Fatal(err)
		}
		runs = append(runs, pageRun{m[2], r})
	}
	return runs
}

// replayTables are the page's tables by their names.
var replayTables = map[string]func([]pageRun) string{"campaign": runsTable("engines"), "gateways": gatewaysTable, "validation": validationTable, "front": frontTable}

// gatewaysTable has a row for each policy of each run of several gateways.
func gatewaysTable(runs []pageRun) string {
	var b strings.Builder
	b.WriteString("| 3 gateways | policy | replicas a session | wall, s | t95, s | hit rate, % | requests max/min |\n|---|---|---|---|---|---|---|\n")
	for _, r := range runs {
		if r.result.Gateways == 0 {
			continue
		}
		for _, p := range r.result.Policies {
			fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s | %s |\n", r.label, p.Policy,
				over(p.Seeds, "%.2f", 1, func(s *replay.SeedResult) float64 { return s.HomesPerSession }), over(p.Seeds, "%.0f", 1, wall),
				over(p.Seeds, "%.0f", 1, func(s *replay.SeedResult) float64 { return s.T95 }), over(p.Seeds, "%.1f", 100, hitRate),
				over(p.Seeds, "%.2f", 1, spread))
		}
	}
	return b.String()
}

// runsTable has a row for each policy of each run whose label has that word.
func runsTable(word string) func([]pageRun) string {
	return func(runs []pageRun) string {
		var b strings.Builder
		b.WriteString("| run | policy | wall, s | t95, s | hit rate, % | lookups a prompt | requests max/min |\n|---|---|---|---|---|---|---|\n")
		for _, r := range runs {
			if !strings.Contains(r.label, word) {
				continue
			}
			for _, p := range r.result.Policies {
				fmt.Fprintf(&b, "| %s | `%s` | %s | %s | %s | %s | %s |\n", r.label, p.Policy, over(p.Seeds, "%.0f", 1, wall),
					over(p.Seeds, "%.0f", 1, func(s *replay.SeedResult) float64 { return s.T95 }), over(p.Seeds, "%.1f", 100, hitRate),
					over(p.Seeds, "%.2f", 1, queries), over(p.Seeds, "%.2f", 1, spread))
			}
		}
		return b.String()
	}
}

// frontTable is the front page's, of the campaign on 28 engines.
func frontTable(runs []pageRun) string {
	var b strings.Builder
	b.WriteString("| a session's first turn goes to | its next turns | wall, s | hit rate, % | requests, busiest / least busy |\n|---|---|---|---|---|\n")
	for _, row := range [...]struct{ policy, first, next string }{
		{"sticky_least_loaded", "the fewest open sessions (`sticky_least_loaded`)", "the same server"},
		{"consistent_hash", "its hash, within bounds of load (`consistent_hash`)", "the same server"},
		{"session_hash", "its hash", "the same server"},
		{"per_process_counter", "the next of a counter in each of 4 client processes", "one of four"},
	} {
		seeds := seedsOf(runs, "28 engines", row.policy)
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", row.first, row.next, over(seeds, "%.0f", 1, wall), over(seeds, "%.1f", 100, hitRate),
			over(seeds, "%.1f", 1, spread))
	}
	return b.String()
}

// over formats a figure over seeds: its median, and from where to where it goes if that can be seen.
func over(seeds []replay.SeedResult, format string, scale float64, of func(*replay.SeedResult) float64) string {
	low, high := of(&seeds[0]), of(&seeds[0])
	for i := range seeds {
		low, high = min(low, of(&seeds[i])), max(high, of(&seeds[i]))
	}
	text := fmt.Sprintf(format, scale*middleOf(seeds, of))
	if from, to := fmt.Sprintf(format, scale*low), fmt.Sprintf(format, scale*high); from != to {
		text += " [" + from + ".." + to + "]"
	}
	return text
}
