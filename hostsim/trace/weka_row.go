package trace

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// wekaDecoder expands one row. Block numbers are local until place gives them their space.
type wekaDecoder struct {
	shared     uint64 // local numbers 1..shared belong to the class of rows
	classSpace uint64
	rowSpace   uint64
	fresh      uint64 // the next local number that the row has not used
	sessions   []Session
	subKey     string
}

// maxLocalBlock keeps local numbers inside the lower 32 bits of an id.
const maxLocalBlock = 1<<32 - 1

// wekaSub is a sub-agent among the requests of a row.
type wekaSub struct {
	T        *float64          `json:"t"`
	Requests []json.RawMessage `json:"sub"`
	Status   string            `json:"status"`
}

// agent appends the session of one agent, and after it those of its sub-agents.
func (d *wekaDecoder) agent(id, parent string, start time.Duration, requests []json.RawMessage, path string) error {
	at := len(d.sessions)
	d.sessions = append(d.sessions, Session{ID: id, Parent: parent, Start: start, BlockTokens: WEKABlockTokens})
	var turns []Turn
	var before []Run
	subs := 0
	for i, raw := range requests {
		here := fmt.Sprintf("%s[%d]", path, i)
		if len(raw) > 0 && raw[0] == '{' {
			subs++
			if err := d.sub(fmt.Sprintf("%s/sub%d", id, subs), id, start, raw, here); err != nil {
				return err
			}
			continue
		}
		t, local, err := d.request(raw, before)
		if err != nil {
			return fmt.Errorf("%s: %w", here, err)
		}
		if n := len(turns); n > 0 && t.At < turns[n-1].At {
			return fmt.Errorf("%s: sent %v after the start, before the request above it (%v)", here, t.At, turns[n-1].At)
		}
		before = local
		t.Blocks = d.place(local)
		turns = append(turns, t)
	}
	if len(turns) == 0 {
		return fmt.Errorf("%s: no requests of its own", path)
	}
	d.sessions[at].Turns = turns
	return nil
}

func (d *wekaDecoder) sub(id, parent string, start time.Duration, raw json.RawMessage, path string) error {
	var s wekaSub
	if err := strictUnmarshal(raw, &s); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if s.T == nil {
		return fmt.Errorf("%s.t: missing", path)
	}
	offset, err := seconds(*s.T)
	if err != nil {
		return fmt.Errorf("%s.t: %w", path, err)
	}
	return d.agent(id, parent, start+offset, s.Requests, path+"."+d.subKey)
}

// request decodes one request and returns its blocks in local numbers beside it.
func (d *wekaDecoder) request(raw json.RawMessage, before []Run) (Turn, []Run, error) {
	var fields []json.RawMessage
	if err := json.Unmarshal(raw, &fields); err != nil {
		return Turn{}, nil, err
	}
	if len(fields) != 6 {
		return Turn{}, nil, fmt.Errorf("%d fields instead of 6", len(fields))
	}
	var at float64
	var think, api *float64
	var t Turn
	for i, into := range []any{&at, &t.Input, &t.Output, &think, &api} {
		if string(fields[i]) == "null" && i < 3 {
			return Turn{}, nil, fmt.Errorf("field %d: null", i)
		}
		if err := json.Unmarshal(fields[i], into); err != nil {
			return Turn{}, nil, fmt.Errorf("field %d: %w", i, err)
		}
	}
	err := checkTokens(t.Input, t.Output)
	if err != nil {
		return Turn{}, nil, err
	}
	for _, field := range []struct {
		number int
		from   *float64
		to     *time.Duration
	}{{0, &at, &t.At}, {3, think, &t.Think}, {4, api, &t.API}} {
		if field.from == nil {
			continue
		}
		if *field.to, err = seconds(*field.from); err != nil {
			return Turn{}, nil, fmt.Errorf("field %d: %w", field.number, err)
		}
	}
	local, err := d.blocks(fields[5], before)
	if err != nil {
		return Turn{}, nil, fmt.Errorf("blocks: %w", err)
	}
	if got, want := BlockCount(local), t.Input/WEKABlockTokens; got != want {
		return Turn{}, nil, fmt.Errorf("blocks: %d of them, but %d input tokens fill %d", got, t.Input, want)
	}
	return t, local, nil
}

// blocks decodes [keep], [keep, new] or [keep, [[first, count], ...]].
func (d *wekaDecoder) blocks(raw json.RawMessage, before []Run) ([]Run, error) {
	var delta []json.RawMessage
	if err := json.Unmarshal(raw, &delta); err != nil {
		return nil, err
	}
	if len(delta) < 1 || len(delta) > 2 {
		return nil, fmt.Errorf("%d values instead of keep and new", len(delta))
	}
	var keep int
	if err := json.Unmarshal(delta[0], &keep); err != nil {
		return nil, fmt.Errorf("keep: %w", err)
	}
	if had := BlockCount(before); keep < 0 || keep > had {
		return nil, fmt.Errorf("keeps %d of the %d blocks before", keep, had)
	}
	runs := firstBlocks(before, keep)
	if len(delta) == 1 {
		return runs, nil
	}
	added, err := d.added(delta[1])
	if err != nil {
		return nil, err
	}
	for _, a := range added {
		if a.First < 1 || a.Count < 0 || a.First+uint64(a.Count) > maxLocalBlock {
			return nil, fmt.Errorf("range [%d, %d] is outside 1 to %d", a.First, a.Count, uint64(maxLocalBlock))
		}
		if a.Count == 0 {
			continue
		}
		runs = append(runs, a)
		d.fresh = max(d.fresh, a.First+uint64(a.Count))
	}
	return runs, nil
}

// added decodes what follows keep: a count of fresh blocks, or explicit ranges.
func (d *wekaDecoder) added(raw json.RawMessage) ([]Run, error) {
	if len(raw) > 0 && raw[0] != '[' {
		var count int
		if err := json.Unmarshal(raw, &count); err != nil {
			return nil, fmt.Errorf("new: %w", err)
		}
		return []Run{{First: d.fresh, Count: count}}, nil
	}
	var ranges [][]uint32
	if err := json.Unmarshal(raw, &ranges); err != nil {
		return nil, fmt.Errorf("new: %w", err)
	}
	runs := make([]Run, 0, len(ranges))
	for _, r := range ranges {
		if len(r) != 2 {
			return nil, errors.New("new: a range is not [first, count]")
		}
		runs = append(runs, Run{First: uint64(r[0]), Count: int(r[1])})
	}
	return runs, nil
}

// firstBlocks copies the runs of the first n blocks.
func firstBlocks(runs []Run, n int) []Run {
	out := make([]Run, 0, len(runs)+1)
	for _, r := range runs {
		if n <= 0 {
			break
		}
		r.Count = min(r.Count, n)
		n -= r.Count
		out = append(out, r)
	}
	return out
}

// place turns local numbers into ids: shared ones into the class's space, the others into the row's. Adjacent runs
// of one space are joined, so that a long conversation does not become a long list.
func (d *wekaDecoder) place(local []Run) []Run {
	out := make([]Run, 0, len(local)+1)
	for _, r := range local {
		count := uint64(r.Count)
		inClass := uint64(0)
		if r.First <= d.shared {
			inClass = min(count, d.shared-r.First+1)
		}
		out = appendRun(out, Run{First: d.classSpace | r.First, Count: int(inClass)})
		out = appendRun(out, Run{First: d.rowSpace | (r.First + inClass), Count: int(count - inClass)})
	}
	return out
}
