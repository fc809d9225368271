package replay

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// ShuffleWindow is how many groups of sessions are read ahead to be shuffled. A trace with no more of them is shuffled as
// a whole.
const ShuffleWindow = 1024

// family is a session and its sub-agents. group is the families whose sessions are samples of one task; one family where
// there is no task.
type (
	family []trace.Session
	group  []family
)

// source hands out a trace's groups in the order in which they start.
type source struct {
	reader trace.Reader
	plain  bool // sub-agents are families of their own
	rand   *rand.Rand
	window []group
	// ahead is a session that was read and belongs to the next group.
	ahead *trace.Session
	read  int
	done  bool
}

// newSource returns a source that shuffles by order, unless that is nil.
func newSource(reader trace.Reader, plain bool, order *rand.Rand) *source {
	return &source{reader: reader, plain: plain, rand: order}
}

// next returns io.EOF after the last group.
func (s *source) next() (group, error) {
	if s.rand == nil {
		return s.readGroup()
	}
	for len(s.window) < ShuffleWindow && !s.done {
		g, err := s.readGroup()
		if err != nil {
			if errors.Is(err, io.EOF) {
				break
			}
			return nil, err
		}
		s.window = append(s.window, g)
	}
	if len(s.window) == 0 {
		return nil, io.EOF
	}
	i, last := s.rand.IntN(len(s.window)), len(s.window)-1
	g := s.window[i]
	s.window[i], s.window[last] = s.window[last], nil
	s.window = s.window[:last]
	return g, nil
}

// readGroup gathers what stands together in the trace: the samples of a task, each with its sub-agents.
func (s *source) readGroup() (group, error) {
	var g group
	for {
		one, err := s.session()
		if errors.Is(err, io.EOF) && len(g) > 0 {
			return g, nil
		}
		if err != nil {
			return nil, err
		}
		switch {
		case len(g) == 0:
			g = group{family{*one}}
		case s.inFamily(g[len(g)-1], one):
			g[len(g)-1] = append(g[len(g)-1], *one)
		case one.Group != "" && one.Group == g[0][0].Group:
			g = append(g, family{*one})
		default:
			s.ahead = one
			return g, nil
		}
	}
}

// inFamily tells whether one is a sub-agent of a session of f.
func (s *source) inFamily(f family, one *trace.Session) bool {
	return !s.plain && one.Parent != "" && slices.ContainsFunc(f, func(of trace.Session) bool { return of.ID == one.Parent })
}

func (s *source) session() (*trace.Session, error) {
	if s.ahead != nil {
		one := s.ahead
		s.ahead = nil
		return one, nil
	}
	if s.done {
		return nil, io.EOF
	}
	one, err := s.reader.Next()
	if errors.Is(err, io.EOF) {
		s.done = true
		return nil, io.EOF
	}
	s.read++
	if err != nil {
		return nil, fmt.Errorf("%w: session %d of the trace: %w", ErrCampaign, s.read, err)
	}
	if len(one.Turns) == 0 || one.BlockTokens < 1 {
		return nil, fmt.Errorf("%w: session %d of the trace (%q) has %d turns and blocks of %d tokens: 1 or more of each",
			ErrCampaign, s.read, one.ID, len(one.Turns), one.BlockTokens)
	}
	return &one, nil
}
