package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// replaySource opens a trace as often as it is played.
type replaySource struct {
	name string
	open func() (trace.Reader, io.Closer, error)
	most int // sessions, 0 for all
	ctx  context.Context

	// What follows is known after measure. tooLong is the turns that no server's KV cache has room for, pauses whether any
	// is recorded, and arrivals whether any turn is later than the first.
	sessions, turns, tooLong int
	pauses, arrivals         bool
	ideal                    float64
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
func (s *replaySource) measure(engine replica.EngineConfig) error {
	reader, err := s.read(0)
	if err != nil {
		return err
	}
	counted := reader.(*seededReader)
	counted.look = func(one *trace.Session) { s.look(one, engine) }
	s.ideal, err = replay.Ideal(counted, engine.BlockTokens)
	if s.sessions, s.turns = counted.sessions, counted.turns; counted.err != nil {
		return counted.err // without what is around it: the reader's own says where and what
	}
	if err == nil && s.sessions == 0 {
		err = fmt.Errorf("--trace %s has no sessions", s.name)
	}
	return err
}

func (s *replaySource) look(one *trace.Session, engine replica.EngineConfig) {
	s.arrivals = s.arrivals || one.Start > 0
	for i := range one.Turns {
		t := &one.Turns[i]
		s.pauses = s.pauses || t.Think > 0
		s.arrivals = s.arrivals || t.At > 0
		if t.Input+max(t.Output, 1)-1 > engine.Blocks*engine.BlockTokens { // the last token is never computed
			s.tooLong++
		}
	}
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
	look            func(*trace.Session) // at each session, if not nil
	err             error                // of the trace, at its end
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
	if r.look != nil {
		r.look(&s)
	}
	return s, nil
}

func (r *seededReader) end(err error) error {
	if r.closer != nil {
		_ = r.closer.Close() // it was only read
		r.closer = nil
	}
	if !errors.Is(err, io.EOF) {
		r.err = err
	}
	return err
}
