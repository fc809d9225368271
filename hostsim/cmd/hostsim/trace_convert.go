package main

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

func newTraceConvert() *cobra.Command {
	var f traceFlags
	var to, out string
	cmd := &cobra.Command{
		Use:   "convert --to FORMAT FILE",
		Short: "Write a trace in another format",
		Long: `convert reads a trace and writes it in another format. FILE may be - for standard input.

What the other format has no place for is lost: docs/traces.md says what that is. A session that it cannot hold at all ends
the conversion with its name and the reason. Bad lines are passed over, and named on standard error.`,
		Example: `  hostsim trace convert --to mooncake-compact conversation_trace.jsonl -o conversation.jsonl
  hostsim trace convert --to groups rollouts.jsonl -o lengths.jsonl.gz
  cat traces/*.json | hostsim trace convert --format weka-plain --to weka -`,
		Args:              exactArgs(1, "one trace"),
		ValidArgsFunction: completeOneFile("jsonl", "gz"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return traceConvert(cmd.Context(), &f, args[0], to, out, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.add(cmd)
	cmd.Flags().StringVar(&to, "to", "", "`FORMAT` to write")
	cmd.Flags().StringVarP(&out, "output", "o", "-", "`FILE` to write, compressed if it ends with .gz; - is standard output")
	return cmd
}

func traceConvert(ctx context.Context, f *traceFlags, path, to, out string, stdin io.Reader, stdout, stderr io.Writer) error {
	if to == "" {
		return usagef("give --to, the format to write: one of %s", formatNames())
	}
	format, err := formatFlag("to", to)
	if err != nil {
		return err
	}
	f.options.BlockTokens = format.BlockTokens()
	t, err := f.open(ctx, path, stdin, stderr)
	if err != nil {
		return err
	}
	defer t.close()
	written := 0
	err = writeTrace(format, f.options, out, stdout, func(w trace.Writer) error {
		return trace.Copy(&countingWriter{w, &written}, t, nil)
	})
	if err != nil {
		return err
	}
	if out != "-" {
		fmt.Fprintf(stderr, "%s: %s as %s\n", out, counted(written, "session"), format)
	}
	return t.verdict()
}

// countingWriter counts what is written.
type countingWriter struct {
	trace.Writer
	n *int
}

func (w *countingWriter) Write(s trace.Session) error {
	err := w.Writer.Write(s)
	if err == nil {
		*w.n++
	}
	return err
}

// writeTrace has a trace written to a file, or to standard output.
func writeTrace(format trace.Format, o trace.Options, out string, stdout io.Writer, fill func(trace.Writer) error) error {
	o.Format = format
	write := func(to io.Writer) error { return fillTrace(o, strings.HasSuffix(out, ".gz"), to, fill) }
	var err error
	if out == "-" {
		err = write(stdout)
	} else {
		err = writeWhole(out, write)
	}
	if errors.Is(err, trace.ErrCannotHold) {
		return errors.New(strings.TrimPrefix(err.Error(), "trace: "))
	}
	return err
}

func fillTrace(o trace.Options, compressed bool, to io.Writer, fill func(trace.Writer) error) error {
	var zipped *gzip.Writer
	if compressed {
		zipped = gzip.NewWriter(to)
		to = zipped
	}
	w, err := trace.NewWriter(to, o)
	if err != nil {
		return err
	}
	if err := fill(w); err != nil {
		return err
	}
	if zipped != nil {
		return zipped.Close()
	}
	return nil
}
