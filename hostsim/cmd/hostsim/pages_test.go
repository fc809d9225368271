package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// onPage is a command line of hostsim, up to what ends it.
var (
	onPage = regexp.MustCompile("hostsim ([a-z]+) ([^`|;&\n]*)")
	long   = regexp.MustCompile(`(?:^| )--([a-z0-9-]+)`)
)

// Commands of hostsim on the project's pages have the flags that stand there.
func TestPagesNameFlagsThatAreThere(t *testing.T) {
	checked := 0
	err := filepath.WalkDir("../../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "node_modules" || name == "target") {
			return fs.SkipDir
		} else if !strings.HasSuffix(name, ".md") {
			return nil
		}
		page, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		joined := strings.ReplaceAll(string(page), "\\\n", "")
		for _, m := range onPage.FindAllStringSubmatch(joined, -1) {
			cmd, _, err := newRoot().Find(append([]string{m[1]}, strings.Fields(m[2])...))
			if err == nil {
				cmd.InitDefaultHelpFlag()
			}
			for _, flag := range long.FindAllStringSubmatch(m[2], -1) {
				checked++
				if err != nil || cmd.Flag(flag[1]) == nil {
					t.Errorf("%s: hostsim %s has no --%s", path, m[1], flag[1])
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if checked < 20 {
		t.Errorf("only %d flags found", checked)
	}
}
