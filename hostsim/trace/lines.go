package trace

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"time"
)

// ErrBadLine is wrapped by the error for a line that is not a valid row.
var ErrBadLine = errors.New("trace: bad line")

// LineError names the line that a reader could not use and why. It wraps ErrBadLine.
type LineError struct {
	// Line counts from 1.
	Line int
	// Reason is one short sentence with the place inside the row.
	Reason string
}

// Error returns "trace: bad line 7: r[3]: ...".
func (e *LineError) Error() string { return fmt.Sprintf("%s %d: %s", ErrBadLine, e.Line, e.Reason) }

// Unwrap returns ErrBadLine.
func (e *LineError) Unwrap() error { return ErrBadLine }

// MaxLineBytes bounds one row. A longer line is a bad line, and reading goes on after it.
const MaxLineBytes = 16 << 20

// Bounds of what one row may say. They keep the arithmetic of a whole trace far from overflow.
const (
	maxTokens  = 1 << 30
	maxSeconds = 1e9
)

// lines yields the lines of a text that are not blank.
type lines struct {
	in     *bufio.Reader
	number int    // of the line that next returned, from 1
	text   []byte // reused
}

func newLines(r io.Reader) *lines { return &lines{in: bufio.NewReaderSize(r, 64<<10)} }

// next returns the next line that is not blank, without its end; it is valid until the next call. An overlong line is
// consumed to its end before it is refused.
func (l *lines) next() ([]byte, error) {
	for {
		text, err := l.read()
		if err != nil || len(bytes.TrimSpace(text)) > 0 {
			return text, err
		}
	}
}

func (l *lines) read() ([]byte, error) {
	l.text = l.text[:0]
	size := 0
	for {
		part, err := l.in.ReadSlice('\n')
		size += len(part)
		if size <= MaxLineBytes {
			l.text = append(l.text, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case err != nil && (!errors.Is(err, io.EOF) || size == 0):
			return nil, err
		}
		l.number++
		if size > MaxLineBytes {
			return nil, l.bad(fmt.Errorf("longer than %d bytes", MaxLineBytes))
		}
		return bytes.TrimSuffix(l.text, []byte("\n")), nil
	}
}

// bad is the error for the line that next returned.
func (l *lines) bad(err error) error { return &LineError{Line: l.number, Reason: err.Error()} }

// strictUnmarshal refuses unknown fields and anything after the value: a misspelt key must not read as a zero.
func strictUnmarshal(text []byte, into any) error {
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(into); err != nil {
		return err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more text after the JSON value")
	}
	return nil
}

// seconds converts a recorded time.
func seconds(s float64) (time.Duration, error) {
	if math.IsNaN(s) || s < 0 || s > maxSeconds {
		return 0, fmt.Errorf("%v is not a time between 0 and 1e9 seconds", s)
	}
	return time.Duration(math.Round(s * 1e9)), nil
}

// checkTokens bounds a turn's lengths.
func checkTokens(input, output int) error {
	if input < 1 || input > maxTokens || output < 0 || output > maxTokens {
		return fmt.Errorf("%d input and %d output tokens; from 1 and from 0 to %d are allowed", input, output, maxTokens)
	}
	return nil
}
