package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/build/version"
)

// Exit codes.
const (
	exitFailed = 1 // a check failed, or the work could not be done
	exitUsage  = 2 // the command line or a suite says something that cannot be meant
)

// usageError is a mistake on the command line.
type usageError struct{ error }

func usagef(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// run executes one command line and returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := newRoot()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	strictCompletion(root) // which takes stdout as it is
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	if invalid := (invalidSuite{}); errors.As(err, &invalid) {
		fmt.Fprintln(stderr, invalid)
		return exitUsage
	}
	// The library's errors begin with its name, which is the command's too.
	fmt.Fprintf(stderr, "hostsim: %s\n", strings.TrimPrefix(err.Error(), "hostsim: "))
	if usage := (usageError{}); errors.As(err, &usage) {
		fmt.Fprintln(stderr, "Run it with --help for flags and examples.")
		return exitUsage
	}
	return exitFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:   "hostsim COMMAND",
		Short: "Run proxy-wasm plugins without a gateway",
		Long: `hostsim runs proxy-wasm plugins the way Envoy does, without Envoy: any plugin, in any language.

hostsim completion SHELL prints a script that completes commands and flags in your shell.

Exit codes: 0 done, 1 a check failed or the work could not be done, 2 a mistake on the command line or in a suite.`,
		Version:               version.Number,
		SilenceUsage:          true,
		SilenceErrors:         true,
		DisableFlagsInUseLine: true,
		// A word that is no command comes here as an argument.
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("there is no command %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	// Cobra shows a command that runs and has others under it twice, but the root runs only to print its help.
	root.SetUsageTemplate(strings.NewReplacer(
		"{{if .HasAvailableSubCommands}}\n  {{.CommandPath}} [command]", "{{if and .HasAvailableSubCommands (not .Runnable)}}\n  {{.CommandPath}} COMMAND",
		"[command]", "COMMAND").Replace(root.UsageTemplate()))
	for _, cmd := range []*cobra.Command{newRun(), newServe(), newReplay(), newTrace(), newFit(), newRecord(), newCheck(), newInspect(), newDemo()} {
		root.AddCommand(completeFlags(cmd))
	}
	return root
}

// strictCompletion gives Cobra's own commands the usage errors of the others.
func strictCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	completion, _, err := root.Find([]string{"completion"})
	if err != nil {
		panic(err) // it has just been added
	}
	var shells []string
	for _, shell := range completion.Commands() {
		shell.Args = exactArgs(0, "flags only")
		shells = append(shells, shell.Name())
	}
	completion.RunE = func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usagef("completion knows no shell %q: choose one of %s", args[0], strings.Join(shells, ", "))
		}
		return cmd.Help()
	}
	completion.Args = cobra.ArbitraryArgs
	completion.Use, completion.DisableFlagsInUseLine = "completion SHELL", true
}

// exactArgs is cobra's check of the number of arguments, as a usage error.
func exactArgs(n int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s takes %s, not %d arguments", cmd.Name(), what, len(args))
		}
		return nil
	}
}
