package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// recordFlags are the flags of record beyond those of serve.
type recordFlags struct {
	serveFlags
	out    string
	redact []string
}

func newRecord() *cobra.Command {
	var f recordFlags
	cmd := &cobra.Command{
		Use:   "record",
		Short: "Record what happens between a gateway and a plugin",
		Long: `record is serve, with every callback and host call of the plugin written down: one JSON object a line, with arguments,
status, results and time. hostsim check plays such a recording to the plugin again, or to another build of it.

A recording holds headers, bodies and configurations in clear, secrets among them. --redact replaces the values of some
headers by random letters and digits of the same length, the same for the same value, there and wherever else a value of
8 bytes or more appears; what the plugin derives from a value, such as a hash, stays. A redacted recording still replays,
but for the comparison of memory, and for plugins whose answer depends on the value.`,
		Example: `  # Pinwheel before three simulated model servers, until Ctrl-C
  hostsim record --wasm dist/pinwheel.wasm --sim-replicas 3 -o traffic.jsonl
  hostsim check traffic.jsonl --wasm dist/pinwheel.wasm

  # your own plugin and upstream, without the clients' secrets, compressed
  hostsim record --wasm my.wasm --upstream web=localhost:9000 --redact authorization,cookie | gzip > traffic.jsonl.gz`,
		Args: exactArgs(0, "flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return record(cmd.Context(), &f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.add(cmd)
	cmd.Flags().StringVarP(&f.out, "output", "o", "-", "`FILE` to write, readable by you alone; - is standard output, if that is no terminal")
	cmd.Flags().StringSliceVar(&f.redact, "redact", nil, "hide the values of these `HEADERS`, a comma list such as authorization,cookie")
	return cmd
}

// record serves until ctx ends. All but the recording goes to stderr where stdout takes that.
func record(ctx context.Context, f *recordFlags, stdout, stderr io.Writer) error {
	if f.wasm == "" {
		return usagef("there is nothing to record without a plugin: give --wasm")
	}
	if err := f.check(); err != nil {
		return err
	}
	out := stdout
	if f.out == "-" {
		if terminal(stdout) {
			return usagef("a recording is nothing to read on a terminal: give -o FILE, or send standard output elsewhere")
		}
		stdout = stderr
	} else {
		file, err := os.OpenFile(f.out, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
		if err != nil {
			return fmt.Errorf("--output: %w", err)
		}
		defer file.Close() // what matters has been written by then, or is an error of the recorder's
		out = file
	}
	f.recorder = hostsim.NewRecorder(out, hostsim.RecordOptions{Redact: f.redact})
	return serve(ctx, &f.serveFlags, stdout, stderr)
}

// terminal is true for a file that is one.
func terminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull) // a device too
	return err != nil || !os.SameFile(info, null)
}
