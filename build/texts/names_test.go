package texts

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// libraries are the packages that pages name things of, with all their exported names: alone, and behind a type's.
var libraries = []string{"hostsim", "hostsim/hosttest", "hostsim/suite"}

// exported is every name of a package and, behind its type, of each field and method, a set.
func exported(t *testing.T, folder string) map[string]bool {
	t.Helper()
	names := map[string]bool{}
	paths, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.FuncDecl:
				names[receiver(n)+n.Name.Name] = true
				return false
			case *ast.ValueSpec:
				for _, name := range n.Names {
					names[name.Name] = true
				}
			case *ast.TypeSpec:
				names[n.Name.Name] = true
				if s, ok := n.Type.(*ast.StructType); ok {
					for _, f := range s.Fields.List {
						for _, name := range f.Names {
							names[n.Name.Name+"."+name.Name] = true
						}
					}
				}
			}
			return true
		})
	}
	return names
}

// receiver is a method's type and a dot.
func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	kind := f.Recv.List[0].Type
	if star, ok := kind.(*ast.StarExpr); ok {
		kind = star.X
	}
	if name, ok := kind.(*ast.Ident); ok {
		return name.Name + "."
	}
	return "."
}

var member = regexp.MustCompile(`\b(?:(hostsim|hosttest|suite)\.)?([A-Z]\w+(?:\.[A-Z]\w+)?)\b`)

// What pages say between backticks about the libraries, such as Config.Faults or hostsim.Check, is there.
func TestNamedGoExists(t *testing.T) {
	all, byPackage := map[string]bool{}, map[string]map[string]bool{}
	for _, folder := range libraries {
		names := exported(t, folder)
		byPackage[filepath.Base(folder)] = names
		for name := range names {
			all[name] = true
		}
	}
	checked := 0
	for _, page := range files(t, ".md") {
		for _, s := range span.FindAllString(fence.ReplaceAllString(read(t, page), ""), -1) {
			for _, m := range member.FindAllStringSubmatch(s, -1) {
				names := all
				if m[1] != "" {
					names = byPackage[m[1]]
				}
				kind, _, dotted := strings.Cut(m[2], ".")
				if m[1] == "" && (!dotted || !all[kind]) {
					continue
				}
				checked++
				if !names[m[2]] {
					t.Errorf("%s names %s, which is not there", page, m[0])
				}
			}
		}
	}
	if checked < 15 {
		t.Errorf("only %d names found", checked)
	}
}
