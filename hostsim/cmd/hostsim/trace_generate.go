package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// generateFlags are those of trace generate.
type generateFlags struct {
	options                trace.GenerateOptions
	strata, to, out        string
	firstPrompt, lastFirst int
}

func newTraceGenerate() *cobra.Command {
	var f generateFlags
	cmd := &cobra.Command{
		Use:   "generate",
		Short: "Make synthetic sessions of a shape of your choice",
		Long: `generate makes sessions that no one had: agents whose prompts grow with each turn, of as many turns as the strata say.
Without flags they are a published campaign of RL rollouts: 610 sessions, 19,582 turns (this makes 0.1% fewer or more),
1.57 billion prompt tokens and 4.8 million generated ones (within 3%). Equal flags make equal files.`,
		Example: `  hostsim trace generate -o campaign.jsonl
  hostsim trace generate --sessions 100000 --seed 2 --system-prompt 4000 -o large.jsonl.gz
  hostsim trace generate --strata 1-4:3,5-20:1 --group-size 8 --first-prompt 500 --first-prompt-max 2000 --per-turn 600 | hostsim trace stats -`,
		Args: exactArgs(0, "flags only"),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return traceGenerate(cmd.Context(), &f, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	flags, o, campaign := cmd.Flags(), &f.options, trace.GenerateOptions{}.WithDefaults()
	var strata []string
	for _, s := range campaign.Strata {
		strata = append(strata, s.String())
	}
	flags.IntVar(&o.Sessions, "sessions", 0, "`N` sessions; without it, as many as the weights of the strata add up to")
	flags.Uint64Var(&o.Seed, "seed", 0, "`NUMBER`; another one makes another trace of the same shape")
	flags.StringVar(&f.strata, "strata", strings.Join(strata, ","), "sessions by their turns, each FROM-TO:WEIGHT")
	flags.IntVar(&f.firstPrompt, "first-prompt", campaign.FirstPrompt[0], "`TOKENS` of a first prompt, at least")
	flags.IntVar(&f.lastFirst, "first-prompt-max", campaign.FirstPrompt[1], "`TOKENS` of a first prompt, at most")
	flags.IntVar(&o.Growth, "per-turn", campaign.Growth, "`TOKENS` by which a session's last prompt is longer than its first, for each turn")
	flags.IntVar(&o.MaxContext, "max-context", campaign.MaxContext, "`TOKENS` of a prompt, at most")
	flags.IntVar(&o.Output, "output-tokens", campaign.Output, "`TOKENS` generated in a turn, in the mean")
	flags.IntVar(&o.System, "system-prompt", campaign.System, "`TOKENS` that all sessions begin with")
	flags.IntVar(&o.GroupSize, "group-size", campaign.GroupSize, "`N` sessions that are samples of one task, with one first prompt")
	flags.StringVar(&f.to, "to", string(trace.Groups), "`FORMAT` to write")
	flags.StringVarP(&f.out, "output", "o", "-", "`FILE` to write, compressed if it ends with .gz; - is standard output")
	return cmd
}

func traceGenerate(ctx context.Context, f *generateFlags, stdout, stderr io.Writer) error {
	format, err := formatFlag("to", f.to)
	if err != nil {
		return err
	}
	o := f.options
	if o.Strata, err = trace.ParseStrata(f.strata); err != nil {
		return usageError{err}
	}
	o.FirstPrompt = [2]int{f.firstPrompt, f.lastFirst}
	o.BlockTokens = format.BlockTokens()
	g, err := trace.Generate(o)
	if err != nil {
		return usageError{err}
	}
	err = writeTrace(format, trace.Options{}, f.out, stdout, func(w trace.Writer) error {
		return trace.Copy(w, &generateProgress{g, ctx, 0, stderr, terminal(stderr) && g.Sessions() >= 10_000}, nil)
	})
	if err == nil && f.out != "-" {
		fmt.Fprintf(stderr, "%s: %s as %s\n", f.out, counted(g.Sessions(), "session"), format)
	}
	return err
}

// generateProgress ends with ctx, and shows how many sessions have been made.
type generateProgress struct {
	*trace.Generator
	ctx   context.Context
	done  int
	out   io.Writer
	shown bool
}

func (p *generateProgress) Next() (trace.Session, error) {
	if p.ctx.Err() != nil {
		return trace.Session{}, errInterrupted
	}
	s, err := p.Generator.Next()
	if !p.shown {
		return s, err
	}
	if every := max(1, p.Sessions()/100); err == nil {
		if p.done++; p.done%every == 0 {
			fmt.Fprintf(p.out, "\r%3d%% of %d sessions", 100*p.done/p.Sessions(), p.Sessions())
		}
	} else if errors.Is(err, io.EOF) {
		fmt.Fprintln(p.out)
	}
	return s, err
}
