// Starts measures what a module costs before its gateway serves: how long a real Envoy takes from exec to ready, the CPU
// time and memory that it has used by then, and how much longer the first request takes than later ones. The modules take
// turns, so that a busy machine disturbs all alike; every figure is compared with the first module's of the same round.
//
//	go run ./examples/envoy/bench/starts [--rounds N] [--requests N] [FILE.wasm...]
//
// Without files they are the floor (../floor: next to nothing but Go's runtime) and dist/pinwheel.wasm.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

func main() {
	version := flag.String("envoy", wheel.Versions[0], "Envoy version; $ENVOY overrides it with a binary of yours")
	rounds := flag.Int("rounds", 7, "rounds; each starts every module once")
	requests := flag.Int("requests", 1000, "requests after the first, on new connections; their median is what the first is compared with")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, *version, *rounds, *requests, flag.Args()); err != nil {
		fmt.Fprintln(os.Stderr, "starts:", err)
		os.Exit(1)
	}
}

// start is what one start of a module showed.
type start struct {
	ready  time.Duration // exec to ready
	cpu    time.Duration // user and system, until ready
	memory int64         // resident bytes, at ready
	first  time.Duration // latency of the first request
	later  time.Duration // median latency of the requests after it
}

func run(ctx context.Context, version string, rounds, requests int, modules []string) error {
	if rounds < 1 || requests < 1 {
		return errors.New("--rounds and --requests are at least 1")
	}
	dir, err := os.MkdirTemp("", "pinwheel-starts-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	root, err := envoytest.Root()
	if err != nil {
		return fmt.Errorf("%w; run from the checkout", err)
	}
	binary, err := wheel.Find(ctx, version)
	if err != nil {
		return err
	}
	if len(modules) == 0 {
		pinwheel, err := envoytest.Wasm(root)
		if err != nil {
			return err
		}
		modules = []string{filepath.Join(dir, "floor.wasm"), pinwheel}
		if err := buildFloor(ctx, root, modules[0]); err != nil {
			return err
		}
	}
	replicas, closeReplicas, err := listen()
	if err != nil {
		return err
	}
	defer closeReplicas()
	configs := make([]config, len(modules))
	for i, m := range modules {
		if configs[i], err = write(root, filepath.Join(dir, strconv.Itoa(i)+".yaml"), m, replicas); err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
	}
	all := make([][]start, len(modules))
	for range rounds {
		for i := range modules {
			s, err := once(ctx, binary, configs[i], requests)
			if err != nil {
				return fmt.Errorf("%s: %w", modules[i], err)
			}
			all[i] = append(all[i], s)
		}
	}
	return print(os.Stdout, modules, all)
}

func buildFloor(ctx context.Context, root, out string) error {
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildmode=c-shared", "-ldflags=-s -w", "-o", out, "./examples/envoy/bench/floor")
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CGO_ENABLED=0", "GOOS=wasip1", "GOARCH=wasm")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the floor: %w\n%s", err, text)
	}
	return nil
}

// listen opens replicas that answer anything with 200.
func listen() (addresses []string, closeAll func(), err error) {
	var servers []*http.Server
	closeAll = func() {
		for _, s := range servers {
			_ = s.Close()
		}
	}
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			closeAll()
			return nil, nil, err
		}
		s := &http.Server{Handler: http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})}
		servers = append(servers, s)
		go func() { _ = s.Serve(l) }()
		addresses = append(addresses, l.Addr().String())
	}
	return addresses, closeAll, nil
}

// config is a bootstrap file and the address at which it listens.
type config struct{ file, address string }

// write makes the user's envoy.yaml one with that module and those replicas.
func write(root, file, module string, replicas []string) (c config, err error) {
	text, err := envoytest.LoadBootstrap(filepath.Join(root, "examples", "envoy", "envoy.yaml"))
	if err != nil {
		return c, err
	}
	port, err := envoytest.FreePort()
	if err != nil {
		return c, err
	}
	ports := [][2]int{{10000, port}, {9901, 0}}
	for i, r := range replicas {
		n, err := strconv.Atoi(r[strings.LastIndexByte(r, ':')+1:])
		if err != nil {
			return c, err
		}
		ports = append(ports, [2]int{8001 + i, n})
	}
	for _, p := range ports {
		if text, err = text.Port(p[0], p[1]); err != nil {
			return c, err
		}
	}
	if module, err = filepath.Abs(module); err != nil {
		return c, err
	}
	if text, err = text.Wasm(module); err != nil {
		return c, err
	}
	if text, err = text.Plugin(func(c map[string]any) { c["replicas"] = replicas }); err != nil {
		return c, err
	}
	return config{file, net.JoinHostPort("127.0.0.1", strconv.Itoa(port))}, os.WriteFile(file, []byte(text), 0o644)
}

func once(ctx context.Context, binary string, c config, requests int) (s start, err error) {
	e, err := envoytest.Start(ctx, envoytest.Options{Binary: binary, Bootstrap: c.file, Concurrency: 1})
	if err != nil {
		return s, err
	}
	defer e.Stop()
	s.ready = e.StartUp
	if s.cpu, s.memory, err = used(e.Pid()); err != nil {
		return s, err
	}
	if s.first, err = ask(ctx, c.address, 0); err != nil {
		return s, err
	}
	later := make([]time.Duration, requests)
	for i := range later {
		if later[i], err = ask(ctx, c.address, i+1); err != nil {
			return s, err
		}
	}
	s.later = median(later)
	return s, nil
}

// ask sends one turn of session n on a new connection, and returns how long the answer took.
func ask(ctx context.Context, address string, n int) (time.Duration, error) {
	var d net.Dialer
	begin := time.Now()
	conn, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := fmt.Fprintf(conn, "GET / HTTP/1.1\r\nhost: a\r\nx-session-id: s%d\r\nconnection: close\r\n\r\n", n); err != nil {
		return 0, err
	}
	answer, err := io.ReadAll(conn)
	took := time.Since(begin)
	if err == nil && !strings.HasPrefix(string(answer), "HTTP/1.1 200") {
		err = fmt.Errorf("%s answered %.80q", address, answer)
	}
	return took, err
}

// used returns what a process has used so far, by its stat and status files. Linux only.
func used(pid int) (cpu time.Duration, memory int64, err error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, 0, err
	}
	// The name of the program, in brackets, may hold anything; utime and stime are the 12th and 13th fields behind it, in
	// hundredths of a second.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			return 0, 0, err
		}
		cpu += time.Duration(n) * 10 * time.Millisecond
	}
	pages, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if err != nil {
		return 0, 0, err
	}
	resident, err := strconv.ParseInt(strings.Fields(string(pages))[1], 10, 64)
	return cpu, resident * int64(os.Getpagesize()), err
}

func print(out io.Writer, modules []string, all [][]start) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "module\tbytes\tready\tx\tCPU\tx\tmemory\tx\tfirst request\tof the median\tx")
	for i, m := range modules {
		file, err := os.Stat(m)
		if err != nil {
			return err
		}
		seconds := func(f func(s start) time.Duration) string {
			return fmt.Sprintf("%.2f s", median(each(all[i], f)).Seconds())
		}
		fmt.Fprintf(table, "%s\t%d\t%s\t%s\t%s\t%s\t%d MiB\t%s\t%.1f ms\t%.1f\t%s\n", filepath.Base(m), file.Size(),
			seconds(func(s start) time.Duration { return s.ready }), ratio(all, i, func(s start) float64 { return float64(s.ready) }),
			seconds(func(s start) time.Duration { return s.cpu }), ratio(all, i, func(s start) float64 { return float64(s.cpu) }),
			median(each(all[i], func(s start) int64 { return s.memory }))>>20, ratio(all, i, func(s start) float64 { return float64(s.memory) }),
			float64(median(each(all[i], func(s start) time.Duration { return s.first })).Microseconds())/1000,
			median(each(all[i], func(s start) float64 { return float64(s.first) / float64(s.later) })),
			ratio(all, i, func(s start) float64 { return float64(s.first) / float64(s.later) }))
	}
	return table.Flush()
}

// ratio is the median over the rounds of module i's value to the first module's, with the range.
func ratio(all [][]start, i int, value func(s start) float64) string {
	ratios := make([]float64, len(all[i]))
	for r := range ratios {
		ratios[r] = value(all[i][r]) / value(all[0][r])
	}
	return fmt.Sprintf("%.2f (%.2f to %.2f)", median(ratios), slices.Min(ratios), slices.Max(ratios))
}

func each[T any](starts []start, value func(s start) T) []T {
	values := make([]T, len(starts))
	for i := range starts {
		values[i] = value(starts[i])
	}
	return values
}

func median[T int64 | float64 | time.Duration](values []T) T {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
