package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

func newTraceStats() *cobra.Command {
	var f traceFlags
	var blockSize int
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "stats FILE...",
		Short: "Count what traces hold, and what a prefix cache could serve of it",
		Long: `stats counts sessions, turns, tokens and blocks of each trace. FILE may be - for standard input.

The ideal hit rate is the share of the prompt tokens that one cache without bound would serve, in whole blocks; the one
within sessions is what is left of it if sessions share nothing. No fleet does better than the first; one that keeps each
session on its replica, with room for it, does at least as well as the second.

Bad lines are passed over: the first 10 are named on standard error, and the table counts all.`,
		Example: `  hostsim trace stats sessions.jsonl
  hostsim trace stats --block-size 4160 weka.jsonl mooncake.jsonl.gz     # an engine that caches 4,160 tokens at a time
  kubectl logs gateway | hostsim trace stats - --format decision-log --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return usagef("stats takes one trace or several")
			}
			return nil
		},
		ValidArgsFunction: completeFiles("jsonl", "gz"),
		RunE: func(cmd *cobra.Command, args []string) error {
			return traceStats(cmd.Context(), &f, args, blockSize, asJSON, cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	f.add(cmd)
	cmd.Flags().IntVar(&blockSize, "block-size", 0, "`TOKENS` of the cache's blocks, a multiple of the trace's own; without it, those")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// traceCounts is the JSON form of one trace.
type traceCounts struct {
	File     string       `json:"file"`
	Format   trace.Format `json:"format"`
	BadLines int          `json:"bad_lines"`
	trace.Stats
}

func traceStats(ctx context.Context, f *traceFlags, paths []string, blockSize int, asJSON bool, stdin io.Reader, stdout, stderr io.Writer) error {
	if blockSize < 0 {
		return usagef("--block-size: %d is no number of tokens", blockSize)
	}
	var all []traceCounts
	var failed []error
	for _, path := range paths {
		counts, err := countTrace(ctx, f, path, blockSize, stdin, stderr)
		if counts == nil {
			return err
		}
		all = append(all, *counts)
		failed = append(failed, err)
	}
	if asJSON {
		out := json.NewEncoder(stdout)
		out.SetIndent("", "  ")
		if err := out.Encode(map[string]any{"traces": all}); err != nil {
			return err
		}
	} else if err := printTraceCounts(stdout, all); err != nil {
		return err
	}
	return errors.Join(failed...)
}

// countTrace counts one file. Counts together with an error are to be shown all the same.
func countTrace(ctx context.Context, f *traceFlags, path string, blockSize int, stdin io.Reader, stderr io.Writer) (*traceCounts, error) {
	t, err := f.open(ctx, path, stdin, stderr)
	if err != nil {
		return nil, err
	}
	defer t.close()
	c := trace.Counter{BlockTokens: blockSize}
	if err := c.AddAll(t); errors.Is(err, trace.ErrBlockSize) {
		return nil, usagef("--block-size: %s: %s", path, strings.TrimPrefix(err.Error(), trace.ErrBlockSize.Error()+": "))
	} else if err != nil {
		return nil, err
	}
	return &traceCounts{path, t.format, t.bad, c.Stats()}, t.verdict()
}

// printTraceCounts writes a column for each trace.
func printTraceCounts(w io.Writer, all []traceCounts) error {
	var table [][]string
	row := func(name string, value func(traceCounts) string) {
		cells := []string{name}
		for _, c := range all {
			cells = append(cells, value(c))
		}
		table = append(table, cells)
	}
	count := func(name string, value func(traceCounts) int) {
		row(name, func(c traceCounts) string { return thousands(value(c)) })
	}
	spread := func(name, unit string, value func(traceCounts) trace.Distribution) {
		row(name, func(c traceCounts) string {
			d := value(c)
			return thousands(int(d.Mean+0.5)) + " / " + thousands(int(d.P50+0.5)) + " / " + thousands(int(d.Max+0.5)) + unit
		})
	}
	if len(all) > 1 {
		row("file", func(c traceCounts) string { return filepath.Base(c.File) })
	}
	row("format", func(c traceCounts) string { return string(c.Format) })
	count("sessions", func(c traceCounts) int { return c.Sessions })
	count("  of them sub-agents", func(c traceCounts) int { return c.SubAgents })
	count("groups", func(c traceCounts) int { return c.Groups })
	count("turns", func(c traceCounts) int { return c.Turns })
	count("prompt tokens", func(c traceCounts) int { return c.PromptTokens })
	count("generated tokens", func(c traceCounts) int { return c.GeneratedTokens })
	row("mean / median / most", func(traceCounts) string { return "" })
	spread("  turns of a session", "", func(c traceCounts) trace.Distribution { return c.TurnsPerSession })
	spread("  tokens of a prompt", "", func(c traceCounts) trace.Distribution { return c.Context })
	spread("  tokens of a last prompt", "", func(c traceCounts) trace.Distribution { return c.Final })
	spread("  think time", " s", func(c traceCounts) trace.Distribution { return c.Think })
	count("tokens of a block", func(c traceCounts) int { return c.BlockTokens })
	count("block references", func(c traceCounts) int { return c.BlockReferences })
	count("  unique", func(c traceCounts) int { return c.UniqueBlocks })
	row("  repeated", func(c traceCounts) string {
		return thousands(c.RepeatedBlocks) + " = " + share(float64(c.RepeatedBlocks)/float64(max(1, c.BlockReferences)))
	})
	count("tokens of a cache's block", func(c traceCounts) int { return c.CacheBlockTokens })
	row("ideal hit rate", func(c traceCounts) string { return share(c.IdealHitRate) })
	row("  within sessions", func(c traceCounts) string { return share(c.SessionHitRate) })
	count("bad lines", func(c traceCounts) int { return c.BadLines })
	return printAligned(w, table)
}

// printAligned writes the first cell of each row to the left, and the others to the right of their columns.
func printAligned(w io.Writer, table [][]string) error {
	widths := make([]int, len(table[0]))
	for _, row := range table {
		for i, cell := range row {
			widths[i] = max(widths[i], len(cell))
		}
	}
	for _, row := range table {
		line := fmt.Sprintf("%-*s", widths[0], row[0])
		for i, cell := range row[1:] {
			line += fmt.Sprintf("  %*s", widths[i+1], cell)
		}
		if _, err := fmt.Fprintln(w, strings.TrimRight(line, " ")); err != nil {
			return err
		}
	}
	return nil
}

func share(x float64) string { return strconv.FormatFloat(100*x, 'f', 2, 64) + "%" }
