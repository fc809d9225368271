package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
)

// MooncakeBlockTokens is the size of a block in Mooncake's traces, in tokens.
const MooncakeBlockTokens = 512

// maxBlockID bounds the ids of a trace: JSON's numbers are exact up to here.
const maxBlockID = 1 << 53

// mooncakePlain reads Mooncake's traces as they were published, a request a line in order of time:
//
//	{"timestamp": 27482, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47, ...]}
//
// timestamp is in milliseconds, and the last id stands for the rest of the prompt, full or not; a row without it is taken
// as well. There are no sessions in it. They are found as the published conversations go on: a request belongs to the
// session whose last request's full blocks are a prefix of its own, at least two of them (the first is everybody's system
// prompt); of several the one with the most. A request without such a one begins a session,
// which is named by its number.
type mooncakePlain struct {
	asRead

	// open has the sessions by the last full block of their last request: its id stands for all before it, too.
	open map[uint64]int
	next int
}

// minSharedBlocks is how many blocks a request must have in common with one before to be of its session.
const minSharedBlocks = 2

func (d *mooncakePlain) blockTokens() int { return MooncakeBlockTokens }

func (d *mooncakePlain) decode(text []byte) (request, error) {
	var row struct {
		Timestamp *float64 `json:"timestamp"`
		Input     int      `json:"input_length"`
		Output    int      `json:"output_length"`
		IDs       []uint64 `json:"hash_ids"`
	}
	if err := strictUnmarshal(text, &row); err != nil {
		return request{}, err
	}
	if row.Timestamp == nil {
		return request{}, errors.New("timestamp: missing")
	}
	q, err := newRequest(*row.Timestamp/1000, row.Input, row.Output)
	if err != nil {
		return request{}, err
	}
	ids, err := runsOf(row.IDs)
	if err != nil {
		return request{}, fmt.Errorf("hash_ids: %w", err)
	}
	if err := q.turn.splitBlocks(ids, MooncakeBlockTokens); err != nil {
		return request{}, fmt.Errorf("hash_ids: %w", err)
	}
	q.session = strconv.Itoa(d.session(AppendBlocks(nil, q.turn.Blocks)))
	return q, nil
}

// session finds the session of a request by its full blocks, and takes the request in.
func (d *mooncakePlain) session(full []uint64) int {
	if d.open == nil {
		d.open = map[uint64]int{}
	}
	number := -1
	for i := len(full) - 1; i >= minSharedBlocks-1 && number < 0; i-- {
		if open, ok := d.open[full[i]]; ok {
			number = open
			delete(d.open, full[i])
		}
	}
	if number < 0 {
		number = d.next
		d.next++
	}
	if len(full) >= minSharedBlocks {
		d.open[full[len(full)-1]] = number
	}
	return number
}

// mooncakeCompact reads the same with runs of ids, and with the session that a request belongs to:
//
//	[27482, 6955, 52, [[46, 14]], 3]
type mooncakeCompact struct{ asRead }

func (mooncakeCompact) blockTokens() int { return MooncakeBlockTokens }

func (mooncakeCompact) decode(text []byte) (request, error) {
	var fields []json.RawMessage
	if err := strictUnmarshal(text, &fields); err != nil {
		return request{}, err
	}
	if len(fields) != 5 {
		return request{}, fmt.Errorf("%d fields instead of 5", len(fields))
	}
	var milliseconds float64
	var input, output int
	var pairs [][]uint64
	var session uint64
	for i, into := range []any{&milliseconds, &input, &output, &pairs, &session} {
		if bytes.Equal(fields[i], []byte("null")) {
			return request{}, fmt.Errorf("field %d: null", i)
		}
		if err := json.Unmarshal(fields[i], into); err != nil {
			return request{}, fmt.Errorf("field %d: %w", i, err)
		}
	}
	q, err := newRequest(milliseconds/1000, input, output)
	if err != nil {
		return request{}, err
	}
	runs := make([]Run, 0, len(pairs))
	for _, p := range pairs {
		if len(p) != 2 || p[0] > maxBlockID || p[1] > maxTokens {
			return request{}, fmt.Errorf("field 3: %v is not [first, count]", p)
		}
		if p[1] > 0 {
			runs = append(runs, Run{First: p[0], Count: int(p[1])})
		}
	}
	if err := q.turn.splitBlocks(runs, MooncakeBlockTokens); err != nil {
		return request{}, fmt.Errorf("field 3: %w", err)
	}
	q.session = strconv.FormatUint(session, 10)
	return q, nil
}

// newRequest checks a request's time, in seconds, and its lengths.
func newRequest(at float64, input, output int) (request, error) {
	sent, err := seconds(at)
	if err != nil {
		return request{}, fmt.Errorf("timestamp: %w", err)
	}
	return request{at: sent, turn: Turn{Input: input, Output: output}}, checkTokens(input, output)
}

// runsOf joins ids that follow each other.
func runsOf(ids []uint64) ([]Run, error) {
	var runs []Run
	for _, id := range ids {
		if id > maxBlockID {
			return nil, fmt.Errorf("%d is above %d", id, uint64(maxBlockID))
		}
		runs = appendRun(runs, Run{First: id, Count: 1})
	}
	return runs, nil
}
