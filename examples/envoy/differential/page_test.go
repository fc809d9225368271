package differential

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

const page = "../../../docs/gateway-profiles.md"

// TestProfilesPage holds the page's tables to the profiles and to the exchanges.
func TestProfilesPage(t *testing.T) {
	files, _ := readFiles(t)
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	want := between(t, string(text), "profiles", profileTable())
	want = between(t, want, "exchanges", exchangeTable(files))
	if *update {
		if err := os.WriteFile(page, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if want != string(text) {
		t.Errorf("%s is not up to date; run go test -update -run TestProfilesPage:\n%s", page, Difference(string(text), want))
	}
}

// between replaces what stands between the marks of a name.
func between(t *testing.T, text, name, content string) string {
	t.Helper()
	head, rest, ok1 := strings.Cut(text, "<!-- "+name+" -->\n")
	_, tail, ok2 := strings.Cut(rest, "<!-- /"+name+" -->")
	if !ok1 || !ok2 {
		t.Fatalf("%s lacks the marks of %s", page, name)
	}
	return head + "<!-- " + name + " -->\n" + content + "<!-- /" + name + " -->" + tail
}

// profileTable has a row for each property in which profiles differ.
func profileTable() string {
	profiles := hostsim.Profiles()
	var b strings.Builder
	row := func(what string, of func(hostsim.Profile) string) {
		b.WriteString("| " + what + " |")
		for _, p := range profiles {
			b.WriteString(" " + of(p) + " |")
		}
		b.WriteString("\n")
	}
	row("", func(p hostsim.Profile) string { return "`" + p.Name + "`" })
	b.WriteString("|---|" + strings.Repeat("---|", len(profiles)) + "\n")
	row("WASI functions", func(p hostsim.Profile) string { return fmt.Sprint(len(p.WASI)) })
	row("unknown imports", func(p hostsim.Profile) string {
		if p.AnyImport {
			return "link, and answer that they are not implemented"
		}
		return "the module does not load"
	})
	row("`poll_oneoff` (sleeping, waiting for the collector)", func(p hostsim.Profile) string {
		if p.PollErrno == 0 {
			return "returns at once"
		}
		return fmt.Sprintf("fails with errno %d: Go modules crash", p.PollErrno)
	})
	row("legal in `_initialize`, `main`, `_start`", func(p hostsim.Profile) string { return legal(p.StartCalls) })
	row("legal in `malloc`, `proxy_on_memory_allocate`", func(p hostsim.Profile) string { return legal(p.AllocCalls) })
	only := hostsim.Envoy140().WASI
	only = slices.DeleteFunc(slices.Clone(only), func(f string) bool { return slices.Contains(hostsim.Envoy136().WASI, f) })
	b.WriteString("\nOnly `envoy-1.40` offers of WASI: `" + strings.Join(only, "`, `") + "`.\n")
	return b.String()
}

func legal(calls []string) string {
	switch {
	case calls == nil:
		return "everything"
	case len(calls) > 5:
		return fmt.Sprintf("%d functions", len(calls))
	}
	return "`" + strings.Join(calls, "`, `") + "`"
}

// exchangeTable counts the exchanges and lists every deviation with its reason.
func exchangeTable(files []*File) string {
	var b, deviations strings.Builder
	b.WriteString("| file | exchanges |\n|---|---|\n")
	total := 0
	for _, f := range files {
		name := strings.TrimPrefix(f.Name, "testdata/")
		total += len(f.Exchanges)
		fmt.Fprintf(&b, "| [%s](../examples/envoy/differential/testdata/%s) | %d |\n", name, name, len(f.Exchanges))
		for _, e := range f.Exchanges {
			for _, d := range e.Deviations {
				fmt.Fprintf(&deviations, "| %s: %s | %s | %s |\n", strings.TrimSuffix(name, ".txt"), e.Name, d.Host, d.Reason)
			}
		}
	}
	fmt.Fprintf(&b, "| all | %d |\n\nEvery difference that is allowed, with its reason:\n\n| exchange | differs | reason |\n|---|---|---|\n", total)
	return b.String() + deviations.String()
}
