package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/suite"
)

// runFlags are the flags of run, as given.
type runFlags struct {
	wasm, profile, only, record string
	asJSON, coverage, verbose   bool
	printExample, printSchema   bool
}

func newRun() *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run SUITE.yaml...",
		Short: "Run declarative cases against a plugin",
		Long: `run reads suites of cases from YAML files: which plugin runs in which gateway, what clients and upstreams do, and what
must come of it, down to each callback. It prints a line a case, and where one fails what was expected and what came.

Time is virtual, so that nothing waits and each run is the same. --example prints a suite to begin with; --schema prints
the JSON schema, with which editors complete keys and find mistakes.

It exits 1 when a case fails, 2 when a suite cannot be meant as it is written.`,
		Example: `  hostsim run --example >my.yaml     # then write the path of your .wasm into it
  hostsim run my.yaml
  hostsim run suites/*.yaml --wasm build/new.wasm --profile envoy-1.36
  hostsim run my.yaml --run 'session|release' --verbose
  hostsim run my.yaml --coverage
  hostsim run my.yaml --json | jq '.cases[] | select(.ok | not)'`,
		ValidArgsFunction: completeFiles("yaml", "yml"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return runSuites(cmd.Context(), &f, args, cmd.OutOrStdout())
		},
	}
	flags := cmd.Flags()
	flags.SortFlags = false
	flags.StringVar(&f.wasm, "wasm", "", "the plugin, a .wasm `FILE`, in place of the suites' own")
	flags.StringVar(&f.profile, "profile", "", "gateway to imitate, in place of the suites' own: envoy-1.36, envoy-1.40 or permissive")
	flags.StringVar(&f.only, "run", "", "run only the cases whose name matches `REGEX`")
	flags.BoolVarP(&f.verbose, "verbose", "v", false, "print the plugin's log of each case")
	flags.BoolVar(&f.coverage, "coverage", false, "print which callbacks and host calls the cases reached")
	flags.StringVar(&f.record, "record", "", "write every callback and host call into `FILE`, for hostsim check")
	flags.BoolVar(&f.asJSON, "json", false, "print JSON")
	flags.BoolVar(&f.printExample, "example", false, "print a suite to begin with, and do nothing else")
	flags.BoolVar(&f.printSchema, "schema", false, "print the JSON schema of suites, and do nothing else")
	return cmd
}

// check finds mistakes on the command line before anything is read.
func (f *runFlags) check(files []string) (suite.Options, error) {
	o := suite.Options{Wasm: f.wasm, Profile: f.profile, CacheDir: cacheDir()}
	if len(files) == 0 {
		return o, usagef("run takes the suites' files; hostsim run --example prints one to begin with")
	}
	if f.profile != "" {
		if _, err := profileFlag(f.profile); err != nil {
			return o, err
		}
	}
	if f.wasm != "" {
		if _, err := readWasm(f.wasm); err != nil {
			return o, err
		}
	}
	if f.only != "" {
		re, err := regexp.Compile(f.only)
		if err != nil {
			return o, usagef("--run: %w", err)
		}
		o.Only = re
	}
	if f.coverage {
		o.Coverage = &hostsim.Coverage{}
	}
	return o, nil
}

// cacheDir is where compiled modules live between runs, or "" where the machine has no place for caches.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "hostsim")
}

func runSuites(ctx context.Context, f *runFlags, files []string, stdout io.Writer) error {
	if f.printExample || f.printSchema {
		text := suite.Example
		if f.printSchema {
			text = suite.Schema
		}
		_, err := stdout.Write(text)
		return err
	}
	o, err := f.check(files)
	if err != nil {
		return err
	}
	suites, err := loadSuites(files)
	if err != nil {
		return err
	}
	if f.record != "" {
		file, err := os.Create(f.record)
		if err != nil {
			return err
		}
		defer file.Close()
		o.Recorder = hostsim.NewRecorder(file, hostsim.RecordOptions{})
	}
	report := newRunReport(f, suites, stdout)
	o.Begin, o.Done = report.beginCase, report.done
	began := time.Now()
	for _, s := range suites {
		report.begin(s)
		if _, err := s.Run(ctx, o); err != nil {
			return suiteError(err)
		}
	}
	if report.cases == 0 {
		return usagef("--run %s matches the name of no case", f.only)
	}
	if err := report.end(time.Since(began), o.Coverage); err != nil {
		return err
	}
	if report.failed > 0 {
		return fmt.Errorf("%d of %d cases failed", report.failed, report.cases)
	}
	return nil
}

// loadSuites parses all files, so that each mistake in any of them is told before anything runs.
func loadSuites(files []string) (suites []*suite.Suite, err error) {
	var all suite.Invalid
	for _, name := range files {
		s, err := suite.Load(name)
		if invalid := (*suite.Invalid)(nil); errors.As(err, &invalid) {
			all.Problems = append(all.Problems, invalid.Problems...)
			continue
		}
		if err != nil {
			return nil, err
		}
		suites = append(suites, s)
	}
	if len(all.Problems) > 0 {
		return nil, suiteError(&all)
	}
	return suites, nil
}

// invalidSuite is a mistake in a suite: its lines stand alone, for editors and people to follow.
type invalidSuite struct{ error }

func suiteError(err error) error {
	if errors.Is(err, suite.ErrInvalid) {
		return invalidSuite{err}
	}
	return err
}
