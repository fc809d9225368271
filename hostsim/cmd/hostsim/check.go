package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

func newCheck() *cobra.Command {
	var wasm string
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "check RECORDING",
		Short: "Play a recording to a plugin and compare",
		Long: `check plays a recording of hostsim record, or hostsim run --record, to a plugin, without gateway, clients or upstreams: it
calls every recorded callback, answers every host call as recorded, time and random numbers included, and stops at the
first difference, which it prints as a diff with the line of the recording. Then it exits 1.

The very module that was recorded must also leave the same memory behind, bit for bit. Another build is compared by what it
does: the results of callbacks, and host calls in order with their arguments. RECORDING may be - for standard input.`,
		Example: `  hostsim check traffic.jsonl --wasm dist/pinwheel.wasm
  zcat traffic.jsonl.gz | hostsim check - --wasm my.wasm --json`,
		Args:              exactArgs(1, "one recording"),
		ValidArgsFunction: completeOneFile("jsonl"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return check(cmd.Context(), args[0], wasm, asJSON, cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
	cmd.Flags().StringVar(&wasm, "wasm", "", "the plugin, a .wasm `FILE`")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// checked is the JSON form.
type checked struct {
	Equal bool `json:"equal"`
	*hostsim.CheckReport
	Difference *hostsim.Difference `json:"difference,omitempty"`
}

func check(ctx context.Context, path, wasmPath string, asJSON bool, stdin io.Reader, stdout io.Writer) error {
	if wasmPath == "" {
		return usagef("give --wasm, the plugin to compare")
	}
	wasm, err := readWasm(wasmPath)
	if err != nil {
		return err
	}
	in := stdin
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		in = file
	}
	report, err := hostsim.Check(ctx, wasm, in)
	var d *hostsim.Difference
	if err != nil && !errors.As(err, &d) {
		return fmt.Errorf("%s: %s", path, strings.TrimPrefix(err.Error(), "hostsim: "))
	}
	if asJSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		out.SetEscapeHTML(false)
		if err := out.Encode(checked{d == nil, report, d}); err != nil {
			return err
		}
	} else {
		printCheck(stdout, report, d)
	}
	if d != nil {
		return fmt.Errorf("%s differs from %s at line %d", wasmPath, path, d.Line)
	}
	return nil
}

// printCheck writes the verdict, or the difference as a diff.
func printCheck(w io.Writer, r *hostsim.CheckReport, d *hostsim.Difference) {
	if d != nil {
		fmt.Fprintf(w, "--- recording, line %d%s\n+++ module\n-%s\n+%s\n", d.Line, d.Where(), printable(d.Expected), printable(d.Got))
		fmt.Fprintf(w, "Equal before that: %d callbacks, %d host calls.\n", r.Callbacks, r.HostCalls)
		return
	}
	fmt.Fprintf(w, "Equal: %d callbacks and %d host calls in %d virtual machines.\n", r.Callbacks, r.HostCalls, r.VMs)
	switch {
	case len(r.Redacted) > 0:
		fmt.Fprintf(w, "Memory is not compared: the recording hides %s.\n", strings.Join(r.Redacted, ", "))
	case !r.SameModule:
		fmt.Fprintln(w, "Memory is not compared: this is another build than the recorded one.")
	case r.Memories == r.VMs:
		fmt.Fprintln(w, "Memory equal, bit for bit.")
	default:
		fmt.Fprintf(w, "Memory equal, bit for bit, in the %d that were not cut off by a deadline or before they had any.\n", r.Memories)
	}
}
