package full

import (
	"go/ast"
	"go/parser"
	"go/printer"
	"go/token"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const hostcallDir = "../internal/hostcall"

// sdkDir is where the source of the SDK's internal package is, in the version of
// go.mod.
func sdkDir(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "list", "-f", "{{.Dir}}", "github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/internal").Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// parse reads the files of a folder that match.
func parse(t *testing.T, dir, match string) (files []*ast.File) {
	t.Helper()
	names, _ := filepath.Glob(filepath.Join(dir, match))
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, f)
	}
	if len(files) == 0 {
		t.Fatalf("no file %s in %s", match, dir)
	}
	return files
}

// directives returns the names that follow a directive, sorted.
func directives(files []*ast.File, directive string) (names []string) {
	for _, f := range files {
		for _, group := range f.Comments {
			for _, c := range group.List {
				if name, ok := strings.CutPrefix(c.Text, directive+" "); ok {
					names = append(names, name)
				}
			}
		}
	}
	slices.Sort(names)
	return names
}

func TestEveryCallbackOfTheSDKIsExported(t *testing.T) {
	want := directives(parse(t, sdkDir(t), "abi_callback*.go"), "//export")
	got := directives(parse(t, ".", "*.go"), "//go:wasmexport")
	if !slices.Equal(got, want) {
		t.Errorf("exported\n%s\nthe SDK exports under TinyGo\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestEveryHostCallOfTheSDKIsImported(t *testing.T) {
	want := directives(parse(t, sdkDir(t), "abi_hostcalls.go"), "//export")
	got := directives(parse(t, hostcallDir, "*.go"), "//go:wasmimport env")
	if !slices.Equal(got, want) {
		t.Errorf("imported\n%s\nthe SDK imports under TinyGo\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// The linker takes our variable for the SDK's: a method more or less, or one of
// another type, would make calls end in the wrong method.
func TestTheInterfaceIsTheSDKs(t *testing.T) {
	enums := enumsOf(parse(t, sdkDir(t), "abi_enums.go"))
	want := methods(parse(t, sdkDir(t), "abi_hostcalls_mock.go"), "ProxyWasmHost", enums)
	got := methods(parse(t, hostcallDir, "sdk_wasip1.go"), "SDK", enums)
	if len(want) < 29 || !slices.Equal(got, want) {
		t.Errorf("bound\n%s\nthe SDK has\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// enumsOf returns the types that are uint32 underneath.
func enumsOf(files []*ast.File) map[string]bool {
	enums := map[string]bool{}
	ast.Inspect(files[0], func(n ast.Node) bool {
		if spec, ok := n.(*ast.TypeSpec); ok {
			enums[spec.Name.Name] = textOf(spec.Type) == "uint32"
		}
		return true
	})
	return enums
}

// methods returns an interface's methods with the types of their parameters and
// results, enums as what they are underneath, sorted.
func methods(files []*ast.File, name string, enums map[string]bool) (out []string) {
	typesOf := func(list *ast.FieldList) string {
		var types []string
		for _, field := range list.List {
			text := textOf(field.Type)
			if enums[text] {
				text = "uint32"
			}
			types = append(types, slices.Repeat([]string{text}, max(1, len(field.Names)))...)
		}
		return strings.Join(types, ", ")
	}
	ast.Inspect(files[0], func(n ast.Node) bool {
		spec, ok := n.(*ast.TypeSpec)
		if !ok || spec.Name.Name != name {
			return true
		}
		for _, m := range spec.Type.(*ast.InterfaceType).Methods.List {
			fn := m.Type.(*ast.FuncType)
			out = append(out, m.Names[0].Name+"("+typesOf(fn.Params)+") "+typesOf(fn.Results))
		}
		return false
	})
	slices.Sort(out)
	return out
}

func textOf(n ast.Node) string {
	var b strings.Builder
	_ = printer.Fprint(&b, token.NewFileSet(), n)
	return b.String()
}
