package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

func newTrace() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "trace COMMAND",
		Short: "Read, convert and make traces of LLM sessions",
		Long: `trace reads recorded LLM sessions: who sent how many tokens, when, and which blocks of the prompt were the same as before.

Formats: ` + formatNames() + `. All have one JSON value a line; files may be compressed by gzip. docs/traces.md shows
a row of each.`,
		Example:               "  hostsim trace stats sessions.jsonl\n  hostsim trace generate --sessions 1000 -o sessions.jsonl.gz",
		DisableFlagsInUseLine: true,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usagef("trace has no command %q", args[0])
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	for _, sub := range []*cobra.Command{newTraceStats(), newTraceConvert(), newTraceGenerate()} {
		for _, flag := range []string{"format", "to"} {
			if sub.Flags().Lookup(flag) == nil {
				continue
			}
			if err := sub.RegisterFlagCompletionFunc(flag, completeFormats); err != nil {
				panic(err) // the flag is there, and has had no completion
			}
		}
		cmd.AddCommand(sub)
	}
	return cmd
}

func formatNames() string {
	var names []string
	for _, f := range trace.Formats() {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

func completeFormats(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return strings.Split(formatNames(), ", "), cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// formatFlag reads the name of a format; empty is allowed where a trace tells it itself.
func formatFlag(flag, name string) (trace.Format, error) {
	f := trace.Format(name)
	if name != "" && !slices.Contains(trace.Formats(), f) {
		return "", usagef("--%s: there is no format %q: choose one of %s", flag, name, formatNames())
	}
	return f, nil
}

// traceFlags say how to read a trace.
type traceFlags struct {
	format  string
	strict  bool
	options trace.Options
}

func (f *traceFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	o, assumed := &f.options, trace.LogAssumptions{}.WithDefaults()
	flags.StringVar(&f.format, "format", "", "`FORMAT` of the trace; without it, as its first line looks")
	flags.BoolVar(&f.strict, "strict", false, "exit 1 if there are bad lines")
	flags.IntVar(&o.BytesPerToken, "bytes-per-token", trace.DefaultBytesPerToken, "conversations: `BYTES` of JSON text that count as a token")
	flags.IntVar(&o.Log.FirstPrompt, "log-first-prompt", assumed.FirstPrompt, "decision log: `TOKENS` assumed of a first prompt")
	flags.IntVar(&o.Log.PerTurn, "log-per-turn", assumed.PerTurn, "decision log: `TOKENS` assumed by which a prompt is longer than the one before")
	flags.IntVar(&o.Log.Output, "log-output", assumed.Output, "decision log: `TOKENS` assumed to be generated in a turn")
	flags.IntVar(&o.Log.System, "log-system", assumed.System, "decision log: `TOKENS` assumed to be the same at the beginning of all sessions")
	flags.DurationVar(&o.Log.API, "log-api-time", assumed.API, "decision log: `TIME` assumed for an answer")
}

// open opens a trace; - is standard input. Its errors name the file; reading ends with ctx.
func (f *traceFlags) open(ctx context.Context, path string, stdin io.Reader, stderr io.Writer) (*traceFile, error) {
	var err error
	if f.options.Format, err = formatFlag("format", f.format); err != nil {
		return nil, err
	}
	t := &traceFile{path: path, stderr: stderr, strict: f.strict}
	in := stdin
	if path != "-" {
		if t.file, err = os.Open(path); err != nil {
			return nil, err
		}
		in = newByteProgress(t.file, path, stderr)
	}
	if t.Reader, t.format, err = trace.Open(interruptible(ctx, in), f.options); err != nil {
		t.close()
		if errors.Is(err, trace.ErrOptions) {
			return nil, usageError{err}
		}
		return nil, t.errorf(err)
	}
	return t, nil
}

// traceFile is a trace being read.
type traceFile struct {
	trace.Reader
	path   string
	format trace.Format
	strict bool
	stderr io.Writer
	file   *os.File
	bad    int
}

// shownBadLines is how many bad lines are listed.
const shownBadLines = 10

// Next passes bad lines over, counts them, and lists the first.
func (t *traceFile) Next() (trace.Session, error) {
	for {
		s, err := t.Reader.Next()
		var bad *trace.LineError
		switch {
		case errors.As(err, &bad):
			if t.bad++; t.bad <= shownBadLines {
				fmt.Fprintf(t.stderr, "%s:%d: %s\n", t.path, bad.Line, bad.Reason)
			}
		case err != nil && !errors.Is(err, io.EOF):
			return s, t.errorf(err)
		default:
			return s, err
		}
	}
}

// verdict tells of the bad lines when all has been read.
func (t *traceFile) verdict() error {
	if t.bad > shownBadLines {
		fmt.Fprintf(t.stderr, "%s: and %s more\n", t.path, counted(t.bad-shownBadLines, "bad line"))
	}
	if t.strict && t.bad > 0 {
		return fmt.Errorf("%s: %s", t.path, counted(t.bad, "bad line"))
	}
	return nil
}

func (t *traceFile) close() {
	if t.file != nil {
		t.file.Close()
	}
}

// errorf puts the file in front of one of the library's errors.
func (t *traceFile) errorf(err error) error {
	return fmt.Errorf("%s: %s", t.path, strings.TrimPrefix(err.Error(), "trace: "))
}

// longFile is the size from which reading shows how far it has come.
const longFile = 16 << 20

// newByteProgress shows on a terminal how much of a long file has been read.
func newByteProgress(file *os.File, path string, stderr io.Writer) io.Reader {
	info, err := file.Stat()
	if err != nil || info.Size() < longFile || !terminal(stderr) {
		return file
	}
	return &byteProgress{Reader: file, path: path, size: info.Size(), out: stderr}
}

type byteProgress struct {
	io.Reader
	path       string
	size, done int64
	percent    int64
	out        io.Writer
}

func (p *byteProgress) Read(b []byte) (int, error) {
	n, err := p.Reader.Read(b)
	p.done += int64(n)
	if percent := 100 * p.done / p.size; percent > p.percent && n > 0 {
		p.percent = percent
		fmt.Fprintf(p.out, "\r%s  %3d%%", p.path, percent)
		if p.done >= p.size {
			fmt.Fprintln(p.out)
		}
	}
	return n, err
}
