// Wasmprofile says how many instructions a sticky turn takes in each function of the plugin.
//
//	go run ./build/wasmprofile [-wasm MODULE] [-turns 2000] [-top 40]
//
// Envoy's compiler is V8, and so is Node's: turns.mjs runs turns in Node, whose V8 writes down where it puts each function, under
// Valgrind, which counts the instructions at each address. Two runs that differ in their number of turns leave what a turn costs.
// Instructions are the same in every run, whatever else the machine does; they are what V8 makes of the module once it is
// optimised, on this processor's architecture.
//
// It needs the Debian packages valgrind and nodejs, or their like, and builds a module of its own, which differs from the shipped
// one only by the names of its functions.
package main

import (
	"bufio"
	"cmp"
	_ "embed"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
)

//go:embed turns.mjs
var turns []byte

func main() {
	wasm := flag.String("wasm", "", "a module to count in place of this checkout's, built without -s and -w, or functions have no names")
	more := flag.Int("turns", 2000, "turns to count")
	top := flag.Int("top", 40, "functions to list")
	flag.Parse()
	if flag.NArg() > 0 || *more < 1 || *top < 1 {
		fmt.Fprintln(os.Stderr, "usage: go run ./build/wasmprofile [-wasm MODULE] [-turns 2000] [-top 40]; turns and top are 1 or more")
		os.Exit(2)
	}
	if err := run(*wasm, *more, *top); err != nil {
		fmt.Fprintln(os.Stderr, "wasmprofile:", err)
		os.Exit(1)
	}
}

func run(module string, more, top int) error {
	for _, program := range []string{"valgrind", "node"} {
		if _, err := exec.LookPath(program); err != nil {
			return fmt.Errorf("%w; Debian has the packages valgrind and nodejs", err)
		}
	}
	dir, err := os.MkdirTemp("", "wasmprofile")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if module == "" {
		module = filepath.Join(dir, "pinwheel.wasm")
		build := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-buildmode=c-shared", "-o", module, "./plugin/wasm")
		build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=wasip1", "GOARCH=wasm")
		if out, err := build.CombinedOutput(); err != nil {
			return fmt.Errorf("go build: %w\n%s", err, out)
		}
	}
	if module, err = filepath.Abs(module); err != nil {
		return err
	}
	script := filepath.Join(dir, "turns.mjs")
	if err := os.WriteFile(script, turns, 0o644); err != nil {
		return err
	}
	// Each function is compiled when it is first called; some first calls come late.
	const few = 500
	fmt.Fprintln(os.Stderr, "counting, about a minute ...")
	var counts [2]map[string]int
	var errs [2]error
	var wait sync.WaitGroup
	for i, n := range []int{few, few + more} {
		wait.Go(func() {
			counts[i], errs[i] = count(filepath.Join(dir, "callgrind."+strconv.Itoa(i)), module, script, n)
		})
	}
	wait.Wait()
	if err := errors.Join(errs[:]...); err != nil {
		return err
	}
	show(perTurn(counts[0], counts[1], more), top)
	return nil
}

// count runs so many turns and returns the instructions of each function of the module.
func count(out, module, script string, turns int) (map[string]int, error) {
	c := exec.Command("valgrind", "--tool=callgrind", "--smc-check=all-non-file", "--callgrind-out-file="+out,
		"--dump-instr=yes", "--dump-line=no", "--compress-pos=no", "--compress-strings=no",
		"node", "--single-threaded", "--no-opt", "--no-sparkplug", "--no-maglev", "--no-liftoff", "--wasm-lazy-compilation",
		"--perf-basic-prof", script, module, strconv.Itoa(turns))
	c.Dir = filepath.Dir(out) // V8 leaves a log where it runs
	text, err := c.CombinedOutput()
	placed := fmt.Sprintf("/tmp/perf-%d.map", c.ProcessState.Pid()) // where perf looks for it
	defer os.Remove(placed)
	if err != nil {
		return nil, fmt.Errorf("valgrind node: %w\n%s", err, text)
	}
	functions, err := readMap(placed)
	if err != nil {
		return nil, err
	}
	return readCounts(out, functions)
}

// function is where V8 put one.
type function struct {
	start, end uint64
	name       string
}

// readMap reads the functions of the module from what V8 writes for perf, ascending.
func readMap(path string) ([]function, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var found []function
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(fields) != 3 || !strings.HasPrefix(fields[2], "JS:") || !strings.HasSuffix(fields[2], "-turbofan") {
			continue
		}
		start, err1 := strconv.ParseUint(fields[0], 16, 64)
		size, err2 := strconv.ParseUint(fields[1], 16, 64)
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(fields[2], "JS:"), "-turbofan")
		if number := strings.LastIndexByte(name, '-'); number > 0 {
			name = name[:number]
		}
		found = append(found, function{start, start + size, name})
	}
	slices.SortFunc(found, func(a, b function) int { return cmp.Compare(a.start, b.start) })
	return found, nil
}

// readCounts adds up, by function, the instructions of Callgrind's file: lines of an address and a count, of which one that
// follows "calls=" is the cost of what was called.
func readCounts(path string, functions []function) (map[string]int, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	counts := map[string]int{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	called := false
	for lines.Scan() {
		line := lines.Text()
		if skip := called; !strings.HasPrefix(line, "0x") || skip {
			called = strings.HasPrefix(line, "calls=")
			continue
		}
		at, n, _ := strings.Cut(line[2:], " ")
		address, err := strconv.ParseUint(at, 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		i, exact := slices.BinarySearchFunc(functions, address, func(f function, a uint64) int { return cmp.Compare(f.start, a) })
		if !exact {
			i--
		}
		if i < 0 || address >= functions[i].end {
			continue
		}
		cost, err := strconv.Atoi(n)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		counts[functions[i].name] += cost
	}
	return counts, lines.Err()
}

// cost is what a function takes of one turn.
type cost struct {
	name         string
	instructions float64
}

func perTurn(few, many map[string]int, turns int) []cost {
	var costs []cost
	for name := range maps.Keys(many) {
		if n := many[name] - few[name]; n != 0 {
			costs = append(costs, cost{name, float64(n) / float64(turns)})
		}
	}
	slices.SortFunc(costs, func(a, b cost) int {
		return cmp.Or(cmp.Compare(b.instructions, a.instructions), cmp.Compare(a.name, b.name))
	})
	return costs
}

func show(costs []cost, top int) {
	total := 0.0
	for _, c := range costs {
		total += c.instructions
	}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(w, "%.0f\t100%%\t a sticky turn, instructions in the module\n", total)
	rest := total
	for _, c := range costs[:min(top, len(costs))] {
		fmt.Fprintf(w, "%.0f\t%.1f%%\t %s\n", c.instructions, 100*c.instructions/total, short(c.name))
		rest -= c.instructions
	}
	if len(costs) > top {
		fmt.Fprintf(w, "%.0f\t%.1f%%\t %d more\n", rest, 100*rest/total, len(costs)-top)
	}
	w.Flush()
}

// short leaves out what V8 makes of an import path.
func short(name string) string {
	return strings.TrimPrefix(name, "github.com_pinwheel_proxy_pinwheel_")
}
