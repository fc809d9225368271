package trace

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"
)

// request is one line of a trace whose sessions are mixed in time.
type request struct {
	// session is the session's ID.
	session string
	// at is when it was sent, measured from the trace's beginning.
	at   time.Duration
	turn Turn
}

// errNoRequest is a rowDecoder's word for a line to pass over.
var errNoRequest = errors.New("trace: no request")

// rowDecoder turns a line into a request. Its state changes only where it returns one.
type rowDecoder interface {
	decode(text []byte) (request, error)
	blockTokens() int
	// finish completes a session that has all its turns: the one of this number, from 0.
	finish(s *Session, number int)
	// none is the error for a trace of so many lines without a request: io.EOF where it may be empty.
	none(lines int) error
}

// asRead is a rowDecoder's part where rows say everything.
type asRead struct{}

func (asRead) finish(*Session, int) {}

func (asRead) none(int) error { return io.EOF }

// interleaved reads a trace whose sessions are mixed in time. A session is known only when the last line has been read,
// so it holds all of them: some 100 bytes a request, and 16 for each run of its blocks.
type interleaved struct {
	lines    *lines
	decoder  rowDecoder
	sessions []Session
	index    map[string]int
	ended    bool
	returned int
}

func newInterleaved(l *lines, d rowDecoder) *interleaved {
	return &interleaved{lines: l, decoder: d, index: map[string]int{}}
}

// Next reads to the end, then returns the sessions in the order in which they start. The time from one request of a
// session to the next holds the answer and the pause, which most such traces do not tell apart: Think stays zero.
func (r *interleaved) Next() (Session, error) {
	for !r.ended {
		text, err := r.lines.next()
		if errors.Is(err, io.EOF) {
			r.ended, r.index = true, nil
			slices.SortStableFunc(r.sessions, func(a, b Session) int { return cmp.Compare(a.Start, b.Start) })
			break
		}
		if err != nil {
			return Session{}, err
		}
		if err := r.add(text); err != nil {
			return Session{}, r.lines.bad(err)
		}
	}
	switch {
	case len(r.sessions) == 0 && r.returned == 0:
		return Session{}, r.decoder.none(r.lines.number)
	case len(r.sessions) == 0:
		return Session{}, io.EOF
	}
	s := r.sessions[0]
	r.sessions = r.sessions[1:]
	r.decoder.finish(&s, r.returned)
	r.returned++
	return s, nil
}

func (r *interleaved) add(text []byte) error {
	q, err := r.decoder.decode(text)
	if errors.Is(err, errNoRequest) {
		return nil
	}
	if err != nil {
		return err
	}
	i, known := r.index[q.session]
	if !known {
		r.index[q.session] = len(r.sessions)
		r.sessions = append(r.sessions, Session{ID: q.session, BlockTokens: r.decoder.blockTokens(), Start: q.at, Turns: []Turn{q.turn}})
		return nil
	}
	s := &r.sessions[i]
	q.turn.At = q.at - s.Start
	if last := s.Turns[len(s.Turns)-1].At; q.turn.At < last {
		return fmt.Errorf("sent at %v, before the request above it of the same session (%v)", q.at, s.Start+last)
	}
	s.Turns = append(s.Turns, q.turn)
	return nil
}

// splitBlocks checks the ids that a row names for a prompt and sets them: one for each block, and one for the rest of the
// prompt that fills none, which may be left out. Ids move up by one, for 0 is a number there.
func (t *Turn) splitBlocks(ids []Run, blockTokens int) error {
	got, full, begun := BlockCount(ids), t.Input/blockTokens, (t.Input+blockTokens-1)/blockTokens
	if got != begun && got != full {
		return fmt.Errorf("%d blocks, but %d input tokens begin %d of %d", got, t.Input, begun, blockTokens)
	}
	for i := range ids {
		ids[i].First++
	}
	if got > full {
		last := &ids[len(ids)-1]
		last.Count--
		t.Tail = last.First + uint64(last.Count)
		if last.Count == 0 {
			ids = ids[:len(ids)-1]
		}
	}
	t.Blocks = ids
	return nil
}
