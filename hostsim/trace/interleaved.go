package trace

import (
	"errors"
	"fmt"
	"io"
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

// rowDecoder turns a line into a request. Its state changes only where the line is good.
type rowDecoder interface {
	decode(text []byte) (request, error)
	blockTokens() int
}

// interleaved reads a trace whose sessions are mixed in time. A session is known only when the last line has been read,
// so it holds all of them: some 100 bytes a request, and 16 for each run of its blocks.
type interleaved struct {
	lines    *lines
	decoder  rowDecoder
	sessions []Session
	index    map[string]int
	ended    bool
}

func newInterleaved(l *lines, d rowDecoder) *interleaved {
	return &interleaved{lines: l, decoder: d, index: map[string]int{}}
}

// Next reads to the end, then returns the sessions in the order of their first line. The time from one request of a
// session to the next holds the answer and the pause, which such a trace does not tell apart: Think stays zero.
func (r *interleaved) Next() (Session, error) {
	for !r.ended {
		text, err := r.lines.next()
		if errors.Is(err, io.EOF) {
			r.ended, r.index = true, nil
			break
		}
		if err != nil {
			return Session{}, err
		}
		if err := r.add(text); err != nil {
			return Session{}, r.lines.bad(err)
		}
	}
	if len(r.sessions) == 0 {
		return Session{}, io.EOF
	}
	s := r.sessions[0]
	r.sessions = r.sessions[1:]
	return s, nil
}

func (r *interleaved) add(text []byte) error {
	q, err := r.decoder.decode(text)
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

// splitBlocks checks the ids that a row names for a prompt and sets them: one for each block, the last one too, which may
// not be full. Ids move up by one, for 0 is a number there.
func (t *Turn) splitBlocks(ids []Run, blockTokens int) error {
	if got, want := BlockCount(ids), (t.Input+blockTokens-1)/blockTokens; got != want {
		return fmt.Errorf("%d blocks, but %d input tokens begin %d of %d", got, t.Input, want, blockTokens)
	}
	for i := range ids {
		ids[i].First++
	}
	if t.Input%blockTokens != 0 {
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
