package main

import (
	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// completeFlags says what the shell offers after flags that several commands share: profiles by name, and files by their
// ending.
func completeFlags(cmd *cobra.Command) *cobra.Command {
	offer := func(flag string, complete cobra.CompletionFunc) {
		if cmd.Flags().Lookup(flag) == nil {
			return
		}
		if err := cmd.RegisterFlagCompletionFunc(flag, complete); err != nil {
			panic(err) // the flag is there, and has had no completion
		}
	}
	offer("profile", completeProfiles)
	offer("wasm", completeFiles("wasm"))
	offer("config", completeFiles("json"))
	offer("engine", completeFiles("json"))
	return cmd
}

func completeProfiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var names []string
	for _, p := range hostsim.Profiles() {
		names = append(names, p.Name)
	}
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// completeFiles offers files with one of the endings, and folders.
func completeFiles(endings ...string) cobra.CompletionFunc {
	return func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return endings, cobra.ShellCompDirectiveFilterFileExt
	}
}

// completeOneFile is completeFiles for a command with one argument.
func completeOneFile(endings ...string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, word string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return completeFiles(endings...)(cmd, args, word)
	}
}
