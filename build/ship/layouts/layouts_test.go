package layouts

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/ship/pull"
)

var module = append([]byte("\x00asm\x01\x00\x00\x00"), bytes.Repeat([]byte{0, 2, 1, 'x'}, 1000)...)

// Every layout is taken, or refused by its own rule; what is taken is the module, byte for byte.
func TestLayouts(t *testing.T) {
	r, stop := Start(module)
	defer stop()
	accepted := 0
	for _, l := range All {
		reference, sha256 := l.Put(r)
		got, _, err := pull.Module(reference, sha256)
		switch {
		case !errors.Is(err, l.Breaks):
			t.Errorf("%s: %v, want %v", l.Name, err, l.Breaks)
		case err == nil && !bytes.Equal(got, module):
			t.Errorf("%s: %d bytes that are not the module", l.Name, len(got))
		case (l.Says == "") != (err == nil):
			t.Errorf("%s: %v, and gateways say %q", l.Name, err, l.Says)
		}
		if err == nil {
			accepted++
		}
	}
	if refused := len(All) - accepted; accepted < 8 || refused < 21 {
		t.Errorf("%d layouts taken, %d refused", accepted, refused)
	}
}

var update = flag.Bool("update", false, "write the page's table")

// docs/install.md has the table, one line a layout.
func TestPageHasTable(t *testing.T) {
	const path = "../../../docs/install.md"
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	rows := [][2]string{{"image", "what the gateway reports"}}
	for _, l := range All {
		says := "taken"
		if l.Says != "" {
			says = "`" + l.Says + "`"
		}
		rows = append(rows, [2]string{l.Name, says})
	}
	widths := [2]int{}
	for _, row := range rows {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	table := "-->\n"
	for i, row := range rows {
		table += fmt.Sprintf("| %-*s | %-*s |\n", widths[0], row[0], widths[1], row[1])
		if i == 0 {
			table += "|" + strings.Repeat("-", widths[0]+2) + "|" + strings.Repeat("-", widths[1]+2) + "|\n"
		}
	}
	pattern := regexp.MustCompile(`(?s)(<!-- layouts: [^\n]*)-->\n.*(<!-- end of layouts -->)`)
	want := pattern.ReplaceAll(page, []byte("${1}"+table+"${2}"))
	if !pattern.Match(page) {
		t.Fatalf("%s has no place for the table", path)
	}
	if bytes.Equal(page, want) {
		return
	}
	if !*update {
		t.Fatalf("%s differs; write it with: go test ./layouts -update", path)
	}
	if err := os.WriteFile(path, want, 0o644); err != nil {
		t.Fatal(err)
	}
}
