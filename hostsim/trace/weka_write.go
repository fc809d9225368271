package trace

import (
	"bufio"
	"encoding/json"
	"slices"
	"time"
)

// wekaWriter writes WEKA's traces. It holds one session and its sub-agents, and all names.
type wekaWriter struct {
	out    *bufio.Writer
	format Format
	family []Session // a session, and after it its sub-agents
	names  writtenNames
}

func (w *wekaWriter) Write(s Session) error {
	if s.BlockTokens != WEKABlockTokens {
		return cannotHold(w.format, s, "blocks of %d tokens instead of %d", s.BlockTokens, WEKABlockTokens)
	}
	if s.Parent != "" && !slices.ContainsFunc(w.family, func(member Session) bool { return member.ID == s.Parent }) {
		return cannotHold(w.format, s, "its parent %q is not among the sessions before it", s.Parent)
	}
	if err := w.names.add(w.format, s, s.ID); err != nil {
		return err
	}
	if s.Parent != "" {
		w.family = append(w.family, s)
		return nil
	}
	err := w.flush()
	w.family = append(w.family[:0], s)
	return err
}

func (w *wekaWriter) Close() error {
	if err := w.flush(); err != nil {
		return err
	}
	return w.out.Flush()
}

// flush writes the family as a line.
func (w *wekaWriter) flush() error {
	if len(w.family) == 0 {
		return nil
	}
	root := w.family[0]
	e := wekaEncoder{shared: uint64((root.Tool + root.System) / WEKABlockTokens), local: map[uint64]uint64{}, plain: w.format == WEKAPlain, family: w.family, unused: 1}
	e.fresh = e.shared + 1
	requests := e.agent(0)
	var row any = wekaRow{ID: root.ID, Tool: root.Tool, Sys: root.System, Requests: raw(requests)}
	if e.plain {
		row = map[string]any{"id": root.ID, "block_size": WEKABlockTokens, "hash_id_scope": "local", "tool_tokens": root.Tool, "system_tokens": root.System, "requests": requests}
	}
	text, err := json.Marshal(row)
	if err != nil {
		return err
	}
	w.family = w.family[:0]
	if _, err := w.out.Write(text); err != nil {
		return err
	}
	return w.out.WriteByte('\n')
}

func raw(items []any) []json.RawMessage {
	out := make([]json.RawMessage, len(items))
	for i, item := range items {
		out[i], _ = json.Marshal(item) // numbers and texts
	}
	return out
}

// wekaEncoder numbers the blocks of a row in the order in which they come: from 1 those that the row shares with its class,
// after them its own.
type wekaEncoder struct {
	family []Session
	plain  bool
	shared uint64
	local  map[uint64]uint64
	fresh  uint64 // the next number for a block of the row's own
	unused uint64 // the number that a reader would give to the next fresh block
}

// agent returns the requests of a member of the family, with its sub-agents where their time is.
func (e *wekaEncoder) agent(member int) []any {
	s := e.family[member]
	var subs []int
	for i, other := range e.family {
		if i != member && other.Parent == s.ID {
			subs = append(subs, i)
		}
	}
	var items []any
	var before []uint64
	for _, t := range s.Turns {
		for len(subs) > 0 && e.family[subs[0]].Start < s.Start+t.At && len(items) > 0 {
			items = append(items, e.sub(s, subs[0]))
			subs = subs[1:]
		}
		ids := AppendBlocks(nil, t.Blocks)
		for i := range ids {
			ids[i] = e.number(ids[i])
		}
		items = append(items, e.request(t, before, ids))
		before = ids
	}
	for _, i := range subs {
		items = append(items, e.sub(s, i))
	}
	return items
}

func (e *wekaEncoder) sub(parent Session, member int) any {
	s := e.family[member]
	offset := max(0, s.Start-parent.Start).Seconds()
	requests := e.agent(member)
	if e.plain {
		return map[string]any{"t": offset, "type": wekaSubAgent, "status": "completed", "requests": requests}
	}
	return wekaSub{&offset, raw(requests), "completed"}
}

// number returns the local number of a block.
func (e *wekaEncoder) number(id uint64) uint64 {
	if place := id & maxLocalBlock; id&classSpace != 0 && place >= 1 && place <= e.shared {
		return place
	}
	n, known := e.local[id]
	if !known {
		n = e.fresh
		e.fresh++
		e.local[id] = n
	}
	return n
}

func (e *wekaEncoder) request(t Turn, before, ids []uint64) any {
	api, think := recorded(t.API), t.Think.Seconds()
	if e.plain {
		return wekaPlainRequest{T: recordedAt(t.At), Type: wekaNonStreamed, In: t.Input, Out: t.Output, IDs: ids, API: api, Think: &think}
	}
	keep := 0
	for keep < min(len(before), len(ids)) && before[keep] == ids[keep] {
		keep++
	}
	runs, _ := runsOf(ids[keep:]) // below 1<<32
	var added any
	switch {
	case len(runs) == 0:
		added = 0
	case len(runs) == 1 && runs[0].First == e.unused:
		added = runs[0].Count
	default:
		ranges := make([][2]uint64, len(runs))
		for i, r := range runs {
			ranges[i] = [2]uint64{r.First, uint64(r.Count)}
		}
		added = ranges
	}
	for _, r := range runs {
		e.unused = max(e.unused, r.First+uint64(r.Count))
	}
	return []any{t.At.Seconds(), t.Input, t.Output, think, api, []any{keep, added}}
}

// recorded returns nil, null in JSON, for an answer whose time is not known.
func recorded(d time.Duration) *float64 {
	if d == 0 {
		return nil
	}
	return recordedAt(d)
}

func recordedAt(d time.Duration) *float64 {
	s := d.Seconds()
	return &s
}
