package replica

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"time"
)

// EngineRecord is one request as a real engine served it, or as an Engine would have.
type EngineRecord struct {
	// Prompt and Output are lengths in tokens, 1 or more.
	Prompt, Output int
	// Arrival, FirstToken and Finished are times on one clock; the first arrival of a log is zero.
	Arrival, FirstToken, Finished time.Duration
}

// TTFT is the time to the first token.
func (r EngineRecord) TTFT() time.Duration { return r.FirstToken - r.Arrival }

// TPOT is the mean time between tokens; zero with fewer than two.
func (r EngineRecord) TPOT() time.Duration {
	if r.Output < 2 {
		return 0
	}
	return (r.Finished - r.FirstToken) / time.Duration(r.Output-1)
}

// E2E is the time from the arrival to the last token.
func (r EngineRecord) E2E() time.Duration { return r.Finished - r.Arrival }

// ErrEngineLog is wrapped by the errors of ReadEngineLog.
var ErrEngineLog = errors.New("replica: engine log")

// ReadEngineLog reads what a real engine did, request by request, in order of arrival. Two forms are told apart by what
// is in them: the result file of `vllm bench serve --save-result --save-detailed` (one JSON object; requests that failed
// are left out), and JSON lines with the times that vLLM keeps of a request:
//
//	{"input_toks":2358,"output_toks":531,"arrival_time":8.08,"queued_ts":8.1,"first_token_ts":8.9,"last_token_ts":25.2}
//
// All times are seconds. first_token_ts and last_token_ts are on the engine's clock, as is queued_ts; arrival_time may
// be on another (vLLM's is the wall clock) and is set against queued_ts, the least difference being taken for no wait.
// Without queued_ts, arrival_time must be on the engine's clock. Errors: ErrEngineLog.
func ReadEngineLog(r io.Reader) ([]EngineRecord, error) {
	data, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrEngineLog, err)
	}
	var log []timedRequest
	bench := new(benchResult)
	if json.Unmarshal(data, bench) == nil && bench.Inputs != nil {
		log, err = bench.requests()
	} else {
		log, err = readTimedRequests(data)
	}
	if err != nil {
		return nil, err
	}
	if len(log) == 0 {
		return nil, fmt.Errorf("%w: no finished request in it", ErrEngineLog)
	}
	return records(log)
}

// timedRequest is a line of a log. Times are seconds.
type timedRequest struct {
	Input    int      `json:"input_toks"`
	Output   int      `json:"output_toks"`
	Arrival  *float64 `json:"arrival_time"`
	Queued   *float64 `json:"queued_ts"`
	First    *float64 `json:"first_token_ts"`
	Last     *float64 `json:"last_token_ts"`
	position string
}

func readTimedRequests(data []byte) ([]timedRequest, error) {
	var log []timedRequest
	for i, line := range bytes.Split(data, []byte("\n")) {
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		q := timedRequest{position: fmt.Sprintf("line %d", i+1)}
		if err := json.Unmarshal(line, &q); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", ErrEngineLog, q.position, err)
		}
		if q.Arrival == nil {
			q.Arrival, q.Queued = q.Queued, nil
		}
		if q.Arrival == nil || q.First == nil || q.Last == nil {
			return nil, fmt.Errorf("%w: %s: wants arrival_time or queued_ts, first_token_ts and last_token_ts (seconds)", ErrEngineLog, q.position)
		}
		log = append(log, q)
	}
	return log, nil
}

// benchResult is what `vllm bench serve` writes; times are seconds.
type benchResult struct {
	Inputs  []int       `json:"input_lens"`
	Outputs []int       `json:"output_lens"`
	Starts  []float64   `json:"start_times"`
	TTFTs   []float64   `json:"ttfts"`
	ITLs    [][]float64 `json:"itls"`
	Errors  []string    `json:"errors"`
}

func (b *benchResult) requests() ([]timedRequest, error) {
	n := len(b.Inputs)
	if len(b.Outputs) != n || len(b.Starts) != n || len(b.TTFTs) != n || len(b.ITLs) != n {
		return nil, fmt.Errorf("%w: input_lens, output_lens, start_times, ttfts and itls want as many elements each: save it with --save-detailed", ErrEngineLog)
	}
	var log []timedRequest
	for i := range b.Inputs {
		if b.Outputs[i] == 0 || i < len(b.Errors) && b.Errors[i] != "" {
			continue
		}
		first := b.Starts[i] + b.TTFTs[i]
		last := first
		for _, gap := range b.ITLs[i] {
			last += gap
		}
		log = append(log, timedRequest{Input: b.Inputs[i], Output: b.Outputs[i], Arrival: &b.Starts[i], First: &first, Last: &last,
			position: fmt.Sprintf("request %d", i)})
	}
	return log, nil
}

// records puts the requests on one clock that begins with the first arrival.
func records(log []timedRequest) ([]EngineRecord, error) {
	shift := math.Inf(1) // from the clock of the arrivals to the engine's
	for _, q := range log {
		if q.Queued != nil {
			shift = min(shift, *q.Queued-*q.Arrival)
		}
	}
	if math.IsInf(shift, 1) {
		shift = 0
	}
	begin := math.Inf(1)
	for _, q := range log {
		begin = min(begin, *q.Arrival+shift)
	}
	out := make([]EngineRecord, 0, len(log))
	for _, q := range log {
		r := EngineRecord{Prompt: q.Input, Output: q.Output, Arrival: seconds(*q.Arrival + shift - begin),
			FirstToken: seconds(*q.First - begin), Finished: seconds(*q.Last - begin)}
		switch {
		case r.Prompt < 1 || r.Output < 1:
			return nil, fmt.Errorf("%w: %s: %d prompt and %d output tokens; wants 1 or more of each", ErrEngineLog, q.position, r.Prompt, r.Output)
		case r.FirstToken < r.Arrival || r.Finished < r.FirstToken:
			return nil, fmt.Errorf("%w: %s: not in this order: arrival, first token, last token", ErrEngineLog, q.position)
		}
		out = append(out, r)
	}
	slices.SortStableFunc(out, func(a, b EngineRecord) int { return cmp.Compare(a.Arrival, b.Arrival) })
	return out, nil
}

// seconds is s as a duration; what is beyond a century, or no number, is the century.
func seconds(s float64) time.Duration {
	const century = 100 * 365 * 24 * 3600
	if !(s < century) {
		s = century
	}
	return time.Duration(math.Round(max(s, -century) * float64(time.Second)))
}
