// Command wasmsize tells what each package costs in a wasm module that official Go builds: bytes of code, which is what a
// gateway compiles before it is ready. Several modules stand side by side.
//
//	go run ./build/wasmsize [--top N] [--functions-of PACKAGE] [PACKAGE...]
//
// Without packages they are the plugin and the benchmark's floor, which is next to nothing but Go's runtime.
package main

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"text/tabwriter"
)

func main() {
	top := flag.Int("top", 30, "packages, or functions, to name; the others are one line")
	of := flag.String("functions-of", "", "import path of a package whose functions stand in the place of packages")
	flag.Parse()
	packages := flag.Args()
	if len(packages) == 0 {
		packages = []string{"./plugin/wasm", "./examples/envoy/bench/floor"}
	}
	if err := run(packages, *top, *of); err != nil {
		fmt.Fprintln(os.Stderr, "wasmsize:", err)
		os.Exit(1)
	}
}

func run(packages []string, top int, of string) error {
	dir, err := os.MkdirTemp("", "wasmsize-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	modules := make([]module, len(packages))
	for i, p := range packages {
		if modules[i], err = measure(p, filepath.Join(dir, "m.wasm"), of); err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	table := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	row := func(name string, value func(m module) int) {
		for _, m := range modules {
			fmt.Fprintf(table, "%d\t", value(m))
		}
		fmt.Fprintf(table, "  %s\n", name)
	}
	for _, p := range packages {
		fmt.Fprintf(table, "%s\t", filepath.Base(p))
	}
	fmt.Fprintln(table, "  bytes of")
	row("the file", func(m module) int { return m.file })
	row("data", func(m module) int { return m.data })
	row("code", func(m module) int { return m.code })
	names := slices.SortedFunc(maps.Keys(modules[0].parts), func(a, b string) int {
		return cmp.Or(modules[0].parts[b]-modules[0].parts[a], strings.Compare(a, b))
	})
	shown := names[:min(top, len(names))]
	for _, name := range shown {
		row("  "+name, func(m module) int { return m.parts[name] })
	}
	row("  others", func(m module) int {
		others := m.code
		for _, name := range shown {
			others -= m.parts[name]
		}
		return others
	})
	return table.Flush()
}

// module is what one module consists of, in bytes.
type module struct {
	file, data, code int
	parts            map[string]int // code by import path, or by function; what the linker makes is under ""
}

// measure builds the package as the Makefile does, then once more with the names of functions.
func measure(dir, out, of string) (m module, err error) {
	for _, flags := range []string{"-s -w -buildid=", "-buildid="} {
		if _, err := goWasm("build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-ldflags="+flags, "-o", out, dir); err != nil {
			return m, err
		}
		wasm, err := os.ReadFile(out)
		if err != nil {
			return m, err
		}
		if m.file == 0 {
			m.file = len(wasm)
			continue
		}
		list, err := goWasm("list", "-deps", "-f", "{{.ImportPath}}", dir)
		if err != nil {
			return m, err
		}
		err = m.read(wasm, strings.Fields(list), of)
		return m, err
	}
	return m, nil
}

func goWasm(args ...string) (string, error) {
	cmd := exec.Command("go", args...)
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "CGO_ENABLED=0")
	var mistakes bytes.Buffer
	cmd.Stderr = &mistakes
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("go %s: %w\n%s", strings.Join(args, " "), err, mistakes.Bytes())
	}
	return string(out), nil
}

var errWasm = errors.New("malformed wasm, or one without names")

// read takes sizes from the sections (WebAssembly Core 5.5, and its appendix on names).
func (m *module) read(wasm []byte, paths []string, of string) error {
	r := reader{rest: wasm[min(8, len(wasm)):]}
	var imported int
	var bodies []int
	names := map[int]string{}
	for len(r.rest) > 0 && !r.bad {
		id := r.byte()
		section := reader{rest: r.bytes(r.number())}
		switch id {
		case 0:
			if string(section.bytes(section.number())) == "name" {
				section.names(names)
			}
		case 2:
			imported = section.number() // Go imports functions alone
		case 10:
			m.code = len(section.rest)
			for range section.number() {
				bodies = append(bodies, len(section.bytes(section.number())))
			}
		case 11:
			m.data = len(section.rest)
		}
		r.bad = r.bad || section.bad
	}
	if r.bad || len(bodies) == 0 || len(names) == 0 {
		return errWasm
	}
	// The linker writes what no identifier has as "_".
	spelled := map[string]string{"runtime": "runtime", "main": "main"}
	for _, p := range paths {
		spelled[unusual.ReplaceAllString(p, "_")] = p
	}
	m.parts = map[string]int{}
	for i, n := range bodies {
		p := packageOf(names[imported+i], spelled)
		switch of {
		case "":
			m.parts[p] += n
		case p:
			m.parts[names[imported+i]] += n
		}
	}
	return nil
}

var unusual = regexp.MustCompile(`[^\w.]`)

// packageOf returns the import path of a function by its name, "" if it has none.
func packageOf(function string, spelled map[string]string) string {
	for i := len(function) - 1; i > 0; i-- {
		if function[i] == '.' {
			if p, ok := spelled[function[:i]]; ok {
				return p
			}
		}
	}
	return ""
}

type reader struct {
	rest []byte
	bad  bool
}

func (r *reader) byte() byte {
	b := r.bytes(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

func (r *reader) bytes(n int) []byte {
	if n < 0 || n > len(r.rest) {
		r.bad, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) number() int {
	v, n := binary.Uvarint(r.rest)
	if n <= 0 || v > 1<<31 {
		r.bad, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[n:]
	return int(v)
}

func (r *reader) names(into map[int]string) {
	for len(r.rest) > 0 {
		id := r.byte()
		sub := reader{rest: r.bytes(r.number())}
		if id != 1 { // functions
			continue
		}
		for n := sub.number(); n > 0 && !sub.bad; n-- {
			index := sub.number()
			into[index] = string(sub.bytes(sub.number()))
		}
		r.bad = r.bad || sub.bad
	}
}
