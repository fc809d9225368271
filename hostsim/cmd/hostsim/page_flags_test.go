package main

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write tables of docs/ anew")

// flagLine is one flag of a help text, from its name on; what follows on lines of its own has been joined.
var flagLine = regexp.MustCompile(`^\s+(?:-\w, |    )--([a-z0-9-]+)(?: (\S+))?\s{2,}(.*?)(?: \(default (.*)\))?$`)

// The page's table of flags is what serve --help says.
func TestPageFlags(t *testing.T) {
	const page, begin, end = "../../../docs/embedded-gateway.md", "-run PageFlags -update -->\n", "<!-- end of flags -->"
	_, help, _ := command("serve", "--help")
	_, help, ok := strings.Cut(help, "\nFlags:\n")
	if !ok {
		t.Fatal("the help has no flags")
	}
	help = regexp.MustCompile(`\n {20,}`).ReplaceAllString(help, " ")
	table := "| flag | default | |\n|---|---|---|\n"
	rows := 0
	for line := range strings.Lines(help) {
		m := flagLine.FindStringSubmatch(strings.TrimSuffix(line, "\n"))
		if m == nil {
			if strings.TrimSpace(line) != "" {
				t.Errorf("not a flag: %q", line)
			}
			continue
		}
		if m[1] == "help" {
			continue
		}
		rows++
		value := m[4]
		if value != "" {
			value = "`" + strings.Trim(value, `"[]`) + "`"
		}
		table += "| `--" + strings.TrimSpace(m[1]+" "+m[2]) + "` | " + value + " | " + m[3] + " |\n"
	}
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(text), begin)
	old, after, ended := strings.Cut(rest, end)
	if !ok || !ended || rows < 20 {
		t.Fatalf("%s has no place for %d flags", page, rows)
	}
	if old == table {
		return
	}
	if !*update {
		t.Fatalf("%s differs from serve --help; -update writes\n%s", page, table)
	}
	if err := os.WriteFile(page, []byte(before+begin+table+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}
