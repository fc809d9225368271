package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// replaySource opens a trace as often as it is played.
type replaySource struct {
	name string
	open func() (trace.Reader, io.Closer, error)
	most int // sessions, 0 for all
	ctx  context.Context

	// sessions, turns and ideal are known after measure.
	sessions, turns int
	ideal           float64
}

// source finds the trace.
func (f *replayFlags) source(ctx context.Context) *replaySource {
	s := &replaySource{ctx: ctx, name: f.trace, most: f.sessions}
	switch f.trace {
	case "":
		s.name = trace.BundledName
		s.open = func() (trace.Reader, io.Closer, error) { return trace.Bundled(), nil, nil }
	case "campaign":
		s.name = "campaign, synthetic"
		s.open = func() (trace.Reader, io.Closer, error) {
			g, err := trace.Generate(trace.GenerateOptions{Sessions: f.sessions})
			return g, nil, err
		}
	default:
		s.open = f.openTrace
	}
	return s
}

func (f *replayFlags) openTrace() (trace.Reader, io.Closer, error) {
	file, err := os.Open(f.trace)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil, fmt.Errorf("--trace: %w: name a file, or campaign, or leave it out for the built-in trace", err)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("--trace: %w", err)
	}
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() && !info.IsDir() {
		return nil, nil, errors.Join(fmt.Errorf("--trace %s is no plain file, and is read more than once: write it to one", f.trace), file.Close())
	}
	reader, _, err := trace.Open(file, trace.Options{Format: trace.Format(f.format)})
	if err != nil {
		if err = fmt.Errorf("--trace %s: %w", f.trace, err); errors.Is(err, trace.ErrFormat) {
			err = fmt.Errorf("%w by --format", err)
		}
		return nil, nil, errors.Join(err, file.Close())
	}
	return reader, file, nil
}

// measure reads the trace once: how much there is to play, and what one cache for all would find.
func (s *replaySource) measure(blockTokens int) error {
	reader, err := s.read(0)
	if err != nil {
		return err
	}
	counted := reader.(*seededReader)
	s.ideal, err = replay.Ideal(counted, blockTokens)
	s.sessions, s.turns = counted.sessions, counted.turns
	if err == nil && s.sessions == 0 {
		err = fmt.Errorf("--trace %s has no sessions", s.name)
	}
	return err
}

// read opens the trace for one seed.
func (s *replaySource) read(seed uint64) (trace.Reader, error) {
	reader, closer, err := s.open()
	if err != nil {
		return nil, err
	}
	r := &seededReader{ctx: s.ctx, from: reader, closer: closer, name: s.name, most: s.most}
	if seed != 0 {
		r.suffix = "@" + strconv.FormatUint(seed, 10)
	}
	return r, nil
}

// seededReader has sessions of other names for each seed: what is chosen by hash would be the same for all seeds otherwise,
// and so be one draw that looks like several. It ends a trace after a number of sessions and closes its file.
type seededReader struct {
	ctx             context.Context
	from            trace.Reader
	closer          io.Closer
	name, suffix    string
	most            int
	sessions, turns int
}

func (r *seededReader) Next() (trace.Session, error) {
	if err := r.ctx.Err(); err != nil {
		return trace.Session{}, r.end(err)
	}
	if r.most > 0 && r.sessions == r.most {
		return trace.Session{}, r.end(io.EOF)
	}
	s, err := r.from.Next()
	switch {
	case errors.Is(err, io.EOF):
		return s, r.end(err)
	case errors.Is(err, trace.ErrBadLine):
		return s, r.end(fmt.Errorf("%s: %w (hostsim trace convert leaves bad lines out)", r.name, err))
	case err != nil:
		return s, r.end(fmt.Errorf("%s: %w", r.name, err))
	}
	s.ID += r.suffix
	if s.Parent != "" {
		s.Parent += r.suffix
	}
	r.sessions++
	r.turns += len(s.Turns)
	return s, nil
}

func (r *seededReader) end(err error) error {
	if r.closer != nil {
		_ = r.closer.Close() // it was only read
		r.closer = nil
	}
	return err
}
