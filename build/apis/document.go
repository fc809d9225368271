package apis

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v4"
)

// Document is one YAML document: of a file, or of a `yaml` block in a page.
type Document struct {
	// File is relative to the root of the checkout, with slashes.
	File string
	// Line is the document's first line, from 1.
	Line int
	// Root is the document's mapping. The lines of its nodes are those of File.
	Root *yaml.Node
	// Block tells that it stands in a page, where it may be a part of a whole.
	Block bool
}

// problem is one at a node of the document.
func (d Document) problem(n *yaml.Node, format string, args ...any) Problem {
	line := d.Line
	if n != nil && n.Line > 0 {
		line = n.Line
	}
	return Problem{d.File, line, fmt.Sprintf(format, args...)}
}

// folders are where people find YAML to copy. What lies elsewhere is for tests.
var folders = []string{"README.md", "docs", "examples", "hostsim/README.md"}

// Documents finds all of a checkout. What cannot be parsed is a problem.
func Documents(root string) (documents []Document, problems []Problem, err error) {
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() {
				if d.Name() == "node_modules" || d.Name() == "target" || d.Name() == "testdata" {
					return fs.SkipDir
				}
				return nil
			}
			name, err := filepath.Rel(root, path)
			if err != nil {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			var found []Document
			var wrong []Problem
			switch filepath.Ext(path) {
			case ".yaml", ".yml":
				found, wrong = Parse(filepath.ToSlash(name), text)
			case ".md":
				found, wrong = ParsePage(filepath.ToSlash(name), text)
			}
			documents, problems = append(documents, found...), append(problems, wrong...)
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return documents, problems, nil
}

// Parse reads the documents of a file. Empty ones are left out.
func Parse(file string, text []byte) (documents []Document, problems []Problem) {
	decoder := yaml.NewDecoder(bytes.NewReader(text))
	for {
		var node yaml.Node
		err := decoder.Decode(&node)
		if errors.Is(err, io.EOF) {
			return documents, problems
		}
		if err != nil {
			line := 1
			if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
				_, _ = fmt.Sscan(m[1], &line)
			}
			return documents, append(problems, Problem{file, line, err.Error()})
		}
		root := &node
		if root.Kind == yaml.DocumentNode && len(root.Content) == 1 {
			root = root.Content[0]
		}
		if root.Kind == yaml.ScalarNode && root.Tag == "!!null" || root.Kind == 0 {
			continue
		}
		documents = append(documents, Document{File: file, Line: root.Line, Root: root})
	}
}

var (
	yamlLine  = regexp.MustCompile(`line (\d+)`)
	yamlBlock = regexp.MustCompile("(?ms)^( *)```yaml\n(.*?)^ *```$")
)

// ParsePage reads the `yaml` blocks of a page.
func ParsePage(file string, text []byte) (documents []Document, problems []Problem) {
	for _, m := range yamlBlock.FindAllSubmatchIndex(text, -1) {
		block := string(text[m[4]:m[5]])
		if excerpt(file, block) {
			continue
		}
		// Lines in front of the block keep the page's line numbers; its own indentation goes.
		before := bytes.Count(text[:m[4]], []byte("\n"))
		lines := strings.Split(block, "\n")
		for i := range lines {
			lines[i] = strings.TrimPrefix(lines[i], string(text[m[2]:m[3]]))
		}
		found, wrong := Parse(file, []byte(strings.Repeat("\n", before)+strings.Join(lines, "\n")))
		for i := range found {
			found[i].Block = true
		}
		documents, problems = append(documents, found...), append(problems, wrong...)
	}
	return documents, problems
}
