// Package texts holds the pages for people to what is there.
package texts

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const root = "../.."

// files returns the checkout's files with that ending, without what is built or fetched.
func files(t *testing.T, ending string) (list []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name := d.Name(); d.IsDir() && (name == "dist" || name == "node_modules" || name == "target" || strings.HasPrefix(name, ".") && path != root) {
			return fs.SkipDir
		} else if strings.HasSuffix(name, ending) {
			list = append(list, path)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

var (
	fence   = regexp.MustCompile("(?ms)^```.*?^```")
	span    = regexp.MustCompile("`[^`]*`")
	link    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+?)\s*$`)
	dropped = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	inTree  = regexp.MustCompile("(?m)(?:^|[\\s\"'(=`])(?:\\./)?((?:policy|plugin|hostsim|examples|build|docs)/[\\w./-]*\\w)")
	test    = regexp.MustCompile("`((?:Test|Benchmark|Fuzz)[A-Z]\\w+)`")
)

// anchors are what a page's headings can be linked by, as GitHub makes them.
func anchors(page string) (list []string) {
	for _, m := range heading.FindAllStringSubmatch(fence.ReplaceAllString(page, ""), -1) {
		text := dropped.ReplaceAllString(strings.ToLower(m[1]), "")
		list = append(list, strings.ReplaceAll(text, " ", "-"))
	}
	return list
}

// Links within the checkout lead to a file, and to a heading of it.
func TestLinksResolve(t *testing.T) {
	links := 0
	for _, page := range files(t, ".md") {
		text := span.ReplaceAllString(fence.ReplaceAllString(read(t, page), ""), "")
		for _, m := range link.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			links++
			file, anchor, _ := strings.Cut(m[1], "#")
			target := page
			if file != "" {
				target = filepath.Join(filepath.Dir(page), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			} else if anchor != "" && !slices.Contains(anchors(read(t, target)), anchor) {
				t.Errorf("%s links to %s: no such heading", page, m[1])
			}
		}
	}
	if links < 20 {
		t.Errorf("only %d links found", links)
	}
}

// Paths that start with one of our folders, in prose and in commands, are there.
func TestPathsExist(t *testing.T) {
	paths := 0
	for _, page := range files(t, ".md") {
		for _, m := range inTree.FindAllStringSubmatch(read(t, page), -1) {
			paths++
			if _, err := os.Stat(filepath.Join(root, m[1])); err != nil {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
		}
	}
	if paths < 20 {
		t.Errorf("only %d paths found", paths)
	}
}

// Tests that a page names are there.
func TestNamedTestsExist(t *testing.T) {
	var code strings.Builder
	for _, file := range files(t, "_test.go") {
		code.WriteString(read(t, file))
	}
	for _, page := range files(t, ".md") {
		for _, m := range test.FindAllStringSubmatch(read(t, page), -1) {
			if !strings.Contains(code.String(), "func "+m[1]+"(") {
				t.Errorf("%s names %s, which is not there", page, m[1])
			}
		}
	}
}

// The front page stays short: what does not fit is a page of its own.
func TestFrontPageIsShort(t *testing.T) {
	if n := strings.Count(read(t, filepath.Join(root, "README.md")), "\n"); n >= 230 {
		t.Errorf("README.md has %d lines, allowed are 229", n)
	}
}
