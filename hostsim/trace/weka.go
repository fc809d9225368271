package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// WEKABlockTokens is the size of a block in WEKA's traces, in tokens.
const WEKABlockTokens = 64

// WEKAReader reads the delta-encoded form of WEKA's Claude Code traces, one JSON object a line:
//
//	{"id": "trace_0095", "tool": 12262, "sys": 2927, "r": [REQUEST | SUB, ...]}
//	REQUEST = [t, input, output, think, api, [keep] | [keep, new] | [keep, [[first, count], ...]]]
//	SUB     = {"t": start, "sub": [REQUEST | SUB, ...], "status": "completed"}
//
// Times are seconds; t is measured from the beginning of the row or of the sub-agent; api may be null (not
// recorded), and so may the think time that follows such an answer.
// A request's blocks are the first keep blocks of the same agent's request before, then new fresh ones (numbered on
// from the highest number that the row has used so far), or else the ranges given.
//
// A row yields one Session, and one more for every sub-agent in it, right after its parent and named
// PARENT/sub1, PARENT/sub2 and so on: a sub-agent has a prompt, and so a cache prefix, of its own, and its requests
// run beside the parent's. A sub-agent's status is not kept.
//
// Block numbers of a row are local to it, except that rows with equal tool and sys (tokens of tool definitions and
// of system prompt) begin with the same text: their blocks 1 to (tool+sys)/WEKABlockTokens are the same blocks. An id as
// returned holds the row, or the class of rows, in its upper 32 bits and the local number in the lower ones.
//
// Not safe for concurrent use. Source of the format: testdata/NOTICE.
type WEKAReader struct {
	lines   *lines
	decode  func([]byte) (wekaRow, error)
	rows    uint64
	classes map[promptClass]uint64
	ready   []Session
	ids     map[string]int
}

// promptClass is what two rows have in common when they begin with the same text.
type promptClass struct{ tool, sys int }

// classSpace marks block ids that belong to a class of rows; without it they belong to one row.
const classSpace = 1 << 63

// NewWEKAReader reads rows from r. It buffers, and takes one line at a time.
func NewWEKAReader(r io.Reader) *WEKAReader { return newWEKAReader(newLines(r), decodeWEKA) }

func newWEKAReader(l *lines, decode func([]byte) (wekaRow, error)) *WEKAReader {
	return &WEKAReader{lines: l, decode: decode, classes: map[promptClass]uint64{}, ids: map[string]int{}}
}

// Next returns the next session, or io.EOF after the last. A bad line gives a *LineError, and the call after it goes
// on with the line below; other errors are those of the underlying reader. Empty lines are passed over.
func (r *WEKAReader) Next() (Session, error) {
	for len(r.ready) == 0 {
		text, err := r.lines.next()
		if err != nil {
			return Session{}, err
		}
		if r.ready, err = r.parse(text); err != nil {
			return Session{}, r.lines.bad(err)
		}
	}
	s := r.ready[0]
	r.ready = r.ready[1:]
	return s, nil
}

// ReadAll returns all remaining sessions. It stops at the first error, and returns what came before it.
func (r *WEKAReader) ReadAll() ([]Session, error) { return ReadAll(r) }

// wekaRow is a line as it stands in the file.
type wekaRow struct {
	ID       string            `json:"id"`
	Tool     int               `json:"tool"`
	Sys      int               `json:"sys"`
	Requests []json.RawMessage `json:"r"`

	key, subKey string // what the form calls an agent's requests, and a sub-agent's
}

func decodeWEKA(text []byte) (wekaRow, error) {
	row := wekaRow{key: "r", subKey: "sub"}
	err := strictUnmarshal(text, &row)
	return row, err
}

// parse turns one line into its sessions. The reader's own state changes only when the whole row is good, so that a
// bad line leaves no trace in the numbering of later ones.
func (r *WEKAReader) parse(text []byte) ([]Session, error) {
	row, err := r.decode(text)
	if err != nil {
		return nil, err
	}
	switch {
	case row.ID == "":
		return nil, errors.New("id: missing or empty")
	case r.ids[row.ID] != 0:
		return nil, fmt.Errorf("id: %q was on line %d already", row.ID, r.ids[row.ID])
	case row.Tool < 0 || row.Sys < 0 || row.Tool > maxTokens || row.Sys > maxTokens:
		return nil, fmt.Errorf("tool, sys: %d and %d tokens: negative, or above %d", row.Tool, row.Sys, maxTokens)
	case len(row.Requests) == 0:
		return nil, fmt.Errorf("%s: no requests", row.key)
	}
	class := promptClass{row.Tool, row.Sys}
	number, known := r.classes[class]
	if !known {
		number = uint64(len(r.classes))
	}
	d := wekaDecoder{
		shared:     uint64((row.Tool + row.Sys) / WEKABlockTokens),
		classSpace: classSpace | number<<32,
		rowSpace:   (r.rows + 1) << 32,
		fresh:      1,
		subKey:     row.subKey,
	}
	if err := d.agent(row.ID, "", 0, row.Requests, row.key); err != nil {
		return nil, err
	}
	d.sessions[0].Tool, d.sessions[0].System = row.Tool, row.Sys
	r.rows++
	r.classes[class] = number
	r.ids[row.ID] = r.lines.number
	return d.sessions, nil
}
