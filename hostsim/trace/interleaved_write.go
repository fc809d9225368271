package trace

import (
	"bufio"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"
)

// interleavedWriter holds the sessions until Close, which writes their turns in order of time.
type interleavedWriter struct {
	out       *bufio.Writer
	format    Format
	row       func(w *interleavedWriter, p placed) any
	sessions  []Session
	names     writtenNames
	blocks    map[uint64]uint64 // numbers by id
	nextBlock uint64
	chats     chatIDs
}

// placed is a turn among those of all sessions.
type placed struct {
	session int // in order of their first turns
	id      string
	turn    int
	at      time.Duration
	Turn
}

func newInterleavedWriter(out *bufio.Writer, f Format, row func(*interleavedWriter, placed) any) *interleavedWriter {
	return &interleavedWriter{out: out, format: f, row: row, names: writtenNames{}, blocks: map[uint64]uint64{}}
}

func (w *interleavedWriter) Write(s Session) error {
	if want := w.format.BlockTokens(); want != 0 && s.BlockTokens != want {
		return cannotHold(w.format, s, "blocks of %d tokens instead of %d", s.BlockTokens, want)
	}
	if err := w.names.add(w.format, s, s.ID); err != nil {
		return err
	}
	w.sessions = append(w.sessions, s)
	return nil
}

func (w *interleavedWriter) Close() error {
	slices.SortStableFunc(w.sessions, func(a, b Session) int { return cmp.Compare(a.Start, b.Start) })
	var all []placed
	for i, s := range w.sessions {
		for j, t := range s.Turns {
			all = append(all, placed{i, s.ID, j, s.Start + t.At, t})
		}
	}
	slices.SortStableFunc(all, func(a, b placed) int { return cmp.Compare(a.at, b.at) })
	w.chats.reserve(w.sessions)
	enc := json.NewEncoder(w.out)
	for _, p := range all {
		if err := enc.Encode(w.row(w, p)); err != nil {
			return err
		}
	}
	w.sessions = nil
	return w.out.Flush()
}

// ids numbers a prompt's blocks in the order in which blocks come, from 0. A rest that is no full block and has no id gets
// one of its own.
func (w *interleavedWriter) ids(p placed) []uint64 {
	ids := AppendBlocks(nil, p.Blocks)
	if p.Tail != 0 {
		ids = append(ids, p.Tail)
	}
	for i, id := range ids {
		n, known := w.blocks[id]
		if !known {
			n = w.nextBlock
			w.nextBlock++
			w.blocks[id] = n
		}
		ids[i] = n
	}
	if p.Tail == 0 && p.Input%w.format.BlockTokens() != 0 {
		ids = append(ids, w.nextBlock)
		w.nextBlock++
	}
	return ids
}

func milliseconds(d time.Duration) json.Number {
	return json.Number(strconv.FormatFloat(float64(d)/float64(time.Millisecond), 'f', -1, 64))
}

// mooncakePlainRow is a published row.
type mooncakePlainRow struct {
	Timestamp json.Number `json:"timestamp"`
	Input     int         `json:"input_length"`
	Output    int         `json:"output_length"`
	IDs       []uint64    `json:"hash_ids"`
}

func writeMooncakePlain(w *interleavedWriter, p placed) any {
	return mooncakePlainRow{milliseconds(p.at), p.Input, p.Output, w.ids(p)}
}

func writeMooncakeCompact(w *interleavedWriter, p placed) any {
	runs, _ := runsOf(w.ids(p)) // numbers of blocks that were written
	pairs := make([][2]uint64, len(runs))
	for i, r := range runs {
		pairs[i] = [2]uint64{r.First, uint64(r.Count)}
	}
	return []any{milliseconds(p.at), p.Input, p.Output, pairs, p.session}
}

func writeQwen(w *interleavedWriter, p placed) any {
	chat, parent := w.chats.next(p)
	seconds := p.at.Seconds()
	return qwenRow{&chat, parent, &seconds, p.Input, p.Output, "text", p.turn + 1, w.ids(p)}
}

// chatIDs gives each turn a number. A session's first turn has the session's own name where that is a number.
type chatIDs struct {
	last map[int]int64 // of each session
	free int64
}

func (c *chatIDs) reserve(sessions []Session) {
	c.last = map[int]int64{}
	for _, s := range sessions {
		if n, ok := chatNumber(s.ID); ok {
			c.free = max(c.free, n+1)
		}
	}
}

// chatNumber reads a name that a chat_id would have given.
func chatNumber(name string) (int64, bool) {
	n, err := strconv.ParseInt(name, 10, 64)
	return n, err == nil && n >= 0 && n < maxBlockID && strconv.FormatInt(n, 10) == name
}

func (c *chatIDs) next(p placed) (chat, parent int64) {
	parent, known := c.last[p.session]
	if !known {
		parent = -1
	}
	chat, named := chatNumber(p.id)
	if known || !named {
		chat = c.free
		c.free++
	}
	c.last[p.session] = chat
	return chat, parent
}

// logEpoch is the time of a written log's beginning: any would do.
var logEpoch = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

type decisionRow struct {
	Pinwheel string    `json:"pinwheel"`
	Time     time.Time `json:"time"`
	Pool     string    `json:"pool"`
	Session  string    `json:"session"`
	Reason   string    `json:"reason"`
	Replica  *string   `json:"replica"`
}

func writeDecision(_ *interleavedWriter, p placed) any {
	row := decisionRow{Pinwheel: "decision", Time: logEpoch.Add(p.at), Pool: "default", Session: p.id, Reason: "placed"}
	if pool, session, ok := cutLast(p.id); ok && session != "" {
		row.Pool, row.Session = pool, session
	}
	if p.turn > 0 {
		row.Reason = "pinned"
	}
	return row
}
