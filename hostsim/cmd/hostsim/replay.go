package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

type replayFlags struct {
	wasm, config       string
	inProcess          bool
	trace, format      string
	sessions           int
	policies           []string
	policyGiven        bool // policies are no default
	replicas           int
	concurrency, seeds int

	engineFile, gpu, model         string
	tp, blockSize                  int
	poolTokens                     int
	maxBatchedTokens, maxSequences int
	overhead, thinkCap             time.Duration
	think, deal                    string
	timeScale                      float64
	openLoop, keepSessions         bool
	gateways, workers, clients     int
	etcdLatency                    time.Duration
	events                         []string
	eventsFile                     string
	json, html                     string
	advise                         bool
	goalT95                        time.Duration
	goalHit                        float64
	maxReplicas                    int
}

func newReplay() *cobra.Command {
	var f replayFlags
	cmd := &cobra.Command{
		Use:   "replay",
		Short: "Play recorded sessions through policies and simulated model servers, on a clock of its own",
		Long: `replay plays every turn of a trace through the plugin, or the same policy in this process, against simulated vLLM servers:
hours of a fleet in seconds, once for each policy and seed. It prints a table of what the sessions and the fleet
experienced, and writes JSON and one HTML file with charts if asked to.

Policies: ` + strings.Join(policy.Names(), ", ") + `.
Baselines, which are no policies of the plugin's: ` + strings.Join(replay.Baselines(), ", ") + `.
GPUs: ` + strings.Join(replica.GPUs(), ", ") + `. Models: ` + strings.Join(replica.Models(), ", ") + `.
Events: "fail N at T [for T]", "join at T", "drain N at T", "undrain N at T", "remove N at T", "update at T pause T",
"update every T pause T"; N counts replicas from 0. "etcd_down at T [for T]" and "etcd_hangs at T [for T]" concern no replica.

With --gateways N each turn comes to one of N gateways, by --deal, and homes tells how many replicas served a session. Gateways
agree where --config says so, {"agreement":{"kind":"etcd"}}: through one simulated etcd.

With --advise it finds the fewest replicas, and how many sessions at once (or those of --concurrency), that meet a goal on
every seed.`,
		Example: `  hostsim replay --replicas 4
  hostsim replay --trace sessions.jsonl --policy sticky_least_loaded,per_request_round_robin --replicas 8 --html report.html
  hostsim replay --trace campaign --think none --replicas 28 --concurrency 112 --gpu GB200 --model nemotron-3-super
  hostsim replay --replicas 4 --engine examples/engines/rtx4090-llama-3.1-8b.json
  hostsim replay --replicas 4 --event "fail 2 at 60s for 30s" --event "update every 5m pause 10s" --json - | jq .policies
  hostsim replay --gateways 3 --deal random --config '{"agreement":{"kind":"etcd"}}' --event "etcd_down at 10m for 1m"
  hostsim replay --advise --goal-t95 15m --max-replicas 32`,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && f.trace == "" {
				return usagef("replay takes flags only: did you mean --trace %s?", args[0])
			}
			return exactArgs(0, "flags only")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, _ []string) error {
			given := cmd.Flags().Changed
			if f.engineFile != "" && (given("gpu") || given("model") || given("tp")) {
				return usagef("--engine says what a server is: leave out --gpu, --model and --tp")
			}
			if f.policyGiven = given("policy"); f.advise && f.policyGiven && len(f.policies) > 1 {
				return usagef("--advise takes one policy; %d are given: name one by --policy", len(f.policies))
			}
			return replayCommand(cmd.Context(), &f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.add(cmd)
	for flag, names := range map[string][]string{
		"policy": append(policy.Names(), replay.Baselines()...), "gpu": replica.GPUs(), "model": replica.Models(),
		"think": thinks, "deal": deals, "format": strings.Split(formatNames(), ", "),
	} {
		if err := cmd.RegisterFlagCompletionFunc(flag, cobra.FixedCompletions(names, cobra.ShellCompDirectiveNoFileComp)); err != nil {
			panic(err) // the flag has just been added
		}
	}
	return cmd
}

// What --think and --deal may be.
var (
	thinks = []string{string(replay.ThinkNone), string(replay.ThinkRecorded), string(replay.ThinkRL)}
	deals  = []string{string(replay.DealRoundRobin), string(replay.DealRandom), string(replay.DealSession)}
)

func (f *replayFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.wasm, "wasm", "dist/pinwheel.wasm", "the plugin, a .wasm `FILE`")
	flags.BoolVar(&f.inProcess, "in-process", false, "decide by the same policies in this process, without the plugin: quicker")
	flags.StringVar(&f.config, "config", "", "the plugin's configuration, a `FILE`, or JSON that begins with {; policy and\nreplicas are the replay's")
	flags.StringVar(&f.trace, "trace", "", "a `FILE` of sessions, or campaign for 610 synthetic ones; without it, 24 recorded\nones that are built in")
	flags.StringVar(&f.format, "format", "", "the trace's `FORMAT`, where its first line does not tell:\n"+formatNames())
	flags.IntVar(&f.sessions, "sessions", 0, "play the first `N` sessions only, or generate N of a campaign; 0 is all")
	flags.StringSliceVar(&f.policies, "policy", []string{"sticky_least_loaded", "consistent_hash", "cache_aware", replay.RoundRobin}, "policies and baselines to compare, each a `NAME`\n")
	flags.IntVar(&f.replicas, "replicas", 4, "`N` model servers at the start")
	flags.IntVar(&f.concurrency, "concurrency", 0, "`N` sessions at once, the next one starting when one ends; 0 is all")
	flags.IntVar(&f.seeds, "seeds", 5, "`N` runs of each policy, which differ in all that is left to chance")
	flags.StringVar(&f.gpu, "gpu", "H100", "what a server runs on: `GPU`")
	flags.StringVar(&f.model, "model", "qwen3-32b", "what it serves: `MODEL`")
	flags.IntVar(&f.tp, "tp", 2, "`N` GPUs a server")
	flags.StringVar(&f.engineFile, "engine", "", "a `FILE` with the server, as hostsim fit writes it, in the place of --gpu, --model\nand --tp")
	flags.IntVar(&f.blockSize, "block-size", 0, "`TOKENS` of a cache block; 0 is the model's own")
	flags.IntVar(&f.poolTokens, "pool-tokens", 0, "`TOKENS` that a server's KV cache holds; 0 is what fits into its memory")
	flags.IntVar(&f.maxBatchedTokens, "max-batched-tokens", 0, "`TOKENS` of one engine step; 0 is the server's own")
	flags.IntVar(&f.maxSequences, "max-sequences", 0, "`N` requests that an engine runs at once; 0 is the server's own")
	flags.DurationVar(&f.overhead, "overhead", replay.DefaultOverhead, "`TIME` that gateway and tokeniser add to each turn")
	flags.StringVar(&f.think, "think", string(replay.ThinkRecorded), "the `KIND` of pauses between turns: none, recorded, or rl, drawn as an RL sandbox's")
	flags.DurationVar(&f.thinkCap, "think-cap", replay.DefaultThinkCap, "recorded pauses are cut to this `TIME`")
	flags.Float64Var(&f.timeScale, "time-scale", 1, "recorded pauses are multiplied by this `FACTOR`")
	flags.BoolVar(&f.openLoop, "open-loop", false, "send each turn when it was recorded, or as soon as the one before has its\nanswer")
	flags.BoolVar(&f.keepSessions, "keep-sessions", false, "never release a session, as clients that do not know how")
	flags.IntVar(&f.gateways, "gateways", 1, "`N` gateways, which know nothing of each other but what the agreement of\n--config has them ask")
	flags.StringVar(&f.deal, "deal", string(replay.DealRoundRobin), "the `WAY` in which a session's turns come to gateways: round_robin, random or session")
	flags.DurationVar(&f.etcdLatency, "etcd-latency", replay.DefaultEtcdLatency, "`TIME` that an answer of the gateways' etcd takes")
	flags.IntVar(&f.workers, "workers", replay.DefaultWorkers, "`N` worker threads of a gateway, each with its own virtual machine")
	flags.IntVar(&f.clients, "clients", 1, "`N` client processes, which matters to per_process_counter")
	flags.StringArrayVar(&f.events, "event", nil, "an `EVENT` of the fleet, such as \"fail 2 at 60s for 30s\"; may be given again")
	flags.StringVar(&f.eventsFile, "events", "", "a `FILE` of such events, one a line, # begins a comment")
	flags.StringVar(&f.json, "json", "", "write all figures to `FILE`, or - for standard output in the place of the table")
	flags.StringVar(&f.html, "html", "", "write a report with charts to `FILE`")
	flags.BoolVar(&f.advise, "advise", false, "find the fewest replicas that meet --goal-t95 or --goal-hit, with one policy")
	flags.DurationVar(&f.goalT95, "goal-t95", 0, "advise: 95% of the sessions are over within this `TIME`")
	flags.Float64Var(&f.goalHit, "goal-hit", 0, "advise: the prefix cache hit `RATE` is this or more, 0 to 1")
	flags.IntVar(&f.maxReplicas, "max-replicas", 64, "advise: try `N` replicas at most")
}

// mostReplicas is how many the plugin takes.
const mostReplicas = 1024

// longestPause is a year.
const longestPause = 365 * 24 * time.Hour

// check finds what cannot be meant, before anything is read.
func (f *replayFlags) check() error {
	for _, n := range []struct {
		flag             string
		value, low, high int
	}{
		{"sessions", f.sessions, 0, 10_000_000}, {"replicas", f.replicas, 1, mostReplicas}, {"concurrency", f.concurrency, 0, 10_000_000},
		{"seeds", f.seeds, 1, 1000}, {"tp", f.tp, 1, 64}, {"block-size", f.blockSize, 0, 1 << 20}, {"pool-tokens", f.poolTokens, 0, 1 << 40},
		{"max-batched-tokens", f.maxBatchedTokens, 0, 1 << 24}, {"max-sequences", f.maxSequences, 0, 1 << 20},
		{"gateways", f.gateways, 1, 64}, {"workers", f.workers, 1, 256}, {"clients", f.clients, 1, 100_000}, {"max-replicas", f.maxReplicas, 1, mostReplicas},
	} {
		if n.value < n.low || n.value > n.high {
			return usagef("--%s %d is outside %d to %d", n.flag, n.value, n.low, n.high)
		}
	}
	for _, c := range []struct {
		flag, value string
		allowed     []string
	}{
		{"think", f.think, thinks}, {"deal", f.deal, deals},
	} {
		if !slices.Contains(c.allowed, c.value) {
			return usagef("--%s %q is not known: choose one of %s", c.flag, c.value, strings.Join(c.allowed, ", "))
		}
	}
	switch {
	case f.overhead < 0 || f.thinkCap < 0 || max(f.overhead, f.thinkCap) > longestPause:
		return usagef("--overhead %v, --think-cap %v: both are outside 0 to %v, or one is", f.overhead, f.thinkCap, longestPause)
	case f.etcdLatency < time.Microsecond || f.etcdLatency > time.Hour:
		return usagef("--etcd-latency %v is outside 1us to 1h", f.etcdLatency)
	case !(f.timeScale > 0 && f.timeScale <= 1e6):
		return usagef("--time-scale %v is outside 0 to 1000000; to have no pauses, give --think none", f.timeScale)
	}
	if f.format != "" && !slices.Contains(trace.Formats(), trace.Format(f.format)) {
		return usagef("--format %q is not known: choose one of %s", f.format, formatNames())
	}
	if err := f.checkPolicies(); err != nil {
		return err
	}
	if f.json != "" && f.html != "" && filepath.Clean(f.json) == filepath.Clean(f.html) {
		return usagef("--json and --html both name %s: name two files", f.json)
	}
	return errors.Join(f.checkOutput("json", f.json), f.checkOutput("html", f.html), f.checkAdvice())
}

func (f *replayFlags) checkPolicies() error {
	known := append(policy.Names(), replay.Baselines()...)
	if len(f.policies) == 0 {
		return usagef("--policy names none: choose of %s", strings.Join(known, ", "))
	}
	seen := map[string]bool{}
	for _, name := range f.policies {
		if !slices.Contains(known, name) {
			return usagef("there is no policy %q: choose of %s", name, strings.Join(known, ", "))
		}
		if seen[name] {
			return usagef("--policy names %s twice", name)
		}
		seen[name] = true
	}
	return nil
}

// checkOutput finds now what would be too late after minutes of work.
func (f *replayFlags) checkOutput(flag, path string) error {
	switch {
	case path == "" || path == "-" && flag == "json":
		return nil
	case path == "-":
		return usagef("--%s - is not possible: name a file", flag)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return usagef("--%s %s: there is no folder %s", flag, path, filepath.Dir(path))
	}
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return usagef("--%s %s is a folder: name a file", flag, path)
	}
	return nil
}

// preset is the server that --engine or a preset describes.
func (f *replayFlags) preset() (replica.EngineConfig, error) {
	if f.engineFile == "" {
		c, err := replica.Preset(f.gpu, f.model, f.tp)
		if err != nil {
			if !hasFold(replica.GPUs(), f.gpu) || !hasFold(replica.Models(), f.model) {
				err = fmt.Errorf("%w; others go into a file for --engine, see examples/engines", err)
			}
			err = usageError{fmt.Errorf("--gpu, --model, --tp: %w", err)}
		}
		return c, err
	}
	c, err := readFrom(f.engineFile, replica.ReadEngine)
	if err != nil {
		err = fmt.Errorf("--engine: %w", err)
	}
	return c, err
}

func hasFold(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, name) })
}

// server names what preset returns, for a reader of the report.
func (f *replayFlags) server() string {
	if f.engineFile != "" {
		return "as " + f.engineFile
	}
	return fmt.Sprintf("%s on %d %s", f.model, f.tp, f.gpu)
}

// engine is one model server.
func (f *replayFlags) engine() (replica.EngineConfig, error) {
	c, err := f.preset()
	if err != nil {
		return c, err
	}
	pool := c.Blocks * c.BlockTokens
	if f.poolTokens > 0 {
		pool = f.poolTokens
	}
	if f.blockSize > 0 {
		c.BlockTokens = f.blockSize
	}
	if f.maxBatchedTokens > 0 {
		c.MaxBatchedTokens = f.maxBatchedTokens
	}
	if f.maxSequences > 0 {
		c.MaxSequences = f.maxSequences
	}
	if c.Blocks = pool / c.BlockTokens; c.Blocks < 1 {
		return c, usagef("a pool of %d tokens is less than a block of %d: raise --pool-tokens or lower --block-size", pool, c.BlockTokens)
	}
	if err := c.Validate(); err != nil {
		return c, usageError{err}
	}
	return c, nil
}

// schedule reads --event and --events.
func (f *replayFlags) schedule() ([]replay.Event, error) {
	lines := f.events
	if f.eventsFile != "" {
		text, err := os.ReadFile(f.eventsFile)
		if err != nil {
			return nil, fmt.Errorf("--events: %w", err)
		}
		lines = append(slices.Clone(lines), strings.Split(string(text), "\n")...)
	}
	var events []replay.Event
	for _, line := range lines {
		line, _, _ = strings.Cut(line, "#")
		if strings.TrimSpace(line) == "" {
			continue
		}
		e, err := replay.ParseEvent(line)
		if err != nil {
			return nil, usageError{err}
		}
		events = append(events, e)
	}
	if err := replay.ValidateSchedule(events, f.replicas); err != nil {
		return nil, usageError{err}
	}
	fleet := f.replicas
	for _, e := range events {
		if e.Kind == replay.EventJoin {
			fleet++
		}
	}
	if fleet > mostReplicas {
		return nil, usagef("%d replicas with those that join: the plugin takes %d at most", fleet, mostReplicas)
	}
	return events, nil
}

func replayCommand(ctx context.Context, f *replayFlags, stdout, stderr io.Writer) error {
	if err := f.check(); err != nil {
		return err
	}
	r, err := newReplayRun(ctx, f, stderr)
	if err == nil && f.advise {
		err = r.advise(ctx, stdout)
	} else if err == nil {
		err = r.compare(ctx, stdout)
	}
	if err != nil && ctx.Err() != nil {
		return errors.New("replay: interrupted, nothing was written")
	}
	return err
}
