package trace

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"slices"
)

// ErrCannotHold is wrapped by the error for a session that the format to write has no words for.
var ErrCannotHold = errors.New("trace: cannot be written")

// Writer writes sessions one after another. What a format has no place for is lost: docs/traces.md says what. Close ends
// the trace and must be called; it does not close what is written to. Not safe for concurrent use.
type Writer interface {
	// Write takes one session. Its error wraps ErrCannotHold where the format has no words for it: that session is not
	// written, and the next may be. Other errors are those of what is written to.
	Write(Session) error
	Close() error
}

// NewWriter returns a writer of a format: all but NeMoGym, whose rows are mostly what a trace does not have. Formats with
// one clock (Mooncake, qwen-bailian, decision logs) are written in order of time at Close, and hold all sessions until then.
// Of Options it takes Format and BytesPerToken. The text of a written chat is made up, of the right length, and as equal
// as the blocks are.
func NewWriter(w io.Writer, o Options) (Writer, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	i := slices.IndexFunc(layouts, func(l layout) bool { return l.format == o.Format })
	switch {
	case i < 0:
		return nil, fmt.Errorf("%w %q: choose one of %s", ErrFormat, o.Format, formatList())
	case layouts[i].writer == nil:
		return nil, fmt.Errorf("%w: %s can only be read", ErrCannotHold, o.Format)
	}
	return layouts[i].writer(bufio.NewWriterSize(w, 64<<10), o), nil
}

// cannotHold is the error for a session.
func cannotHold(f Format, s Session, format string, args ...any) error {
	return fmt.Errorf("%w as %s: session %q: %s", ErrCannotHold, f, s.ID, fmt.Sprintf(format, args...))
}

// writtenNames are those of the sessions in a trace that is written. No reader would take one a second time.
type writtenNames map[string]bool

// add takes the name by which a session will be read. Its error wraps ErrCannotHold.
func (n writtenNames) add(f Format, s Session, name string) error {
	if n[name] {
		return cannotHold(f, s, "there is another one of this name")
	}
	n[name] = true
	return nil
}

// Copy writes all remaining sessions of r and closes w. A line that cannot be read, or a session that cannot be written, is
// given to skip, which may be nil, and copying goes on where that returns nil; nil ends it with the error.
func Copy(w Writer, r Reader, skip func(error) error) error {
	for {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			return w.Close()
		}
		if err == nil {
			err = w.Write(s)
		}
		if err == nil {
			continue
		}
		if skip == nil || !errors.Is(err, ErrBadLine) && !errors.Is(err, ErrCannotHold) {
			return err
		}
		if err := skip(err); err != nil {
			return err
		}
	}
}

// extends tells whether the blocks of long begin with all of short's. It compares runs, however long they are.
func extends(long, short []Run) bool {
	var l Run
	for _, s := range short {
		for s.Count > 0 {
			if l.Count == 0 {
				if len(long) == 0 {
					return false
				}
				l, long = long[0], long[1:]
				continue
			}
			if l.First != s.First {
				return false
			}
			n := min(l.Count, s.Count)
			l = Run{l.First + uint64(n), l.Count - n}
			s = Run{s.First + uint64(n), s.Count - n}
		}
	}
	return true
}
