// Soak sends millions of requests of thousands of sessions through a stock Envoy with Pinwheel, while replicas die,
// configurations change, replicas leave and come, operators drain, and workers lose their plugin. It knows where each session
// belongs and what was asked in all, so it sees every session that moves without a reason, every wrong answer, and every count
// that is not exact; and it watches the memory.
//
//	go run ./examples/envoy/soak [-requests N] [-json FILE]
//
// It ends with an error if a promise was broken, and at Ctrl-C with what it saw until then.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/pinwheel-proxy/pinwheel/build/envoy/wheel"
)

func main() {
	var s settings
	var slope float64
	var file string
	flag.StringVar(&s.Version, "envoy", wheel.Versions[0], "Envoy version; $ENVOY overrides it with a binary of yours")
	flag.Uint64Var(&s.Requests, "requests", 10_000_000, "requests to be answered")
	flag.IntVar(&s.Sessions, "sessions", 4000, "sessions that are open at once, about")
	flag.IntVar(&s.Connections, "connections", 32, "kept-alive connections, one request at a time on each")
	flag.IntVar(&s.Replicas, "replicas", 8, "replicas, 6 to 16")
	flag.IntVar(&s.Workers, "workers", 2, "Envoy's worker threads")
	flag.IntVar(&s.Events, "events", -1, "things done to the gateway meanwhile; -1: one in 40,000 requests, nine at least")
	flag.BoolVar(&s.Crashes, "crashes", true, "let workers crash: a guard stands in front of two of the module's exports. false runs the file as it is")
	flag.DurationVar(&s.IdleTimeout, "idle-timeout", 3*time.Minute, "session.idle_timeout; some sessions are left to expire. A round of all sessions must take less")
	flag.DurationVar(&s.Drain, "drain", time.Minute, "how long Envoy keeps an old listener's connections")
	flag.DurationVar(&s.Limit, "limit", 6*time.Hour, "time for the load; when it is over, the checks follow")
	flag.Float64Var(&slope, "max-slope", 8, "fail if the resident set grows by more MiB for a million requests in the second half; 0 only reports")
	flag.DurationVar(&s.Progress, "progress", 10*time.Second, "time between two lines of progress")
	flag.Uint64Var(&s.Seed, "seed", 1, "of the load's choices")
	flag.StringVar(&file, "json", "", "file for the report as JSON")
	flag.Parse()
	s.MaxSlope = slope * (1 << 20)
	if s.Events < 0 {
		s.Events = int(max(uint64(len(cycle)), s.Requests/40_000))
	}
	if flag.NArg() > 0 || s.Requests == 0 || s.Connections < 1 || s.Sessions < 2*s.Connections || s.Replicas < 6 || s.Replicas > maxReplicas ||
		s.Workers < 1 || s.IdleTimeout < time.Second || s.Limit <= 0 {
		flag.Usage()
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	rep, err := soak(ctx, s, func(line string) { fmt.Println(line) })
	if err == nil {
		rep.print(os.Stdout)
		if file != "" {
			err = rep.write(file)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	if err != nil || !rep.ok() {
		os.Exit(1)
	}
}
