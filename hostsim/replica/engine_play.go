package replica

import (
	"fmt"
	"slices"
	"time"
)

// PlayLog serves the log's requests with an engine of its own, at the times at which they arrived, and returns what the
// engine made of them, in the same order. No two requests share a prefix. The log is in order of arrival, as ReadEngineLog
// returns it. Errors: ErrConfig, ErrTooLong, ErrRequest. It costs what the engine's steps cost.
func PlayLog(c EngineConfig, log []EngineRecord) ([]EngineRecord, error) {
	e, err := NewEngine(c)
	if err != nil {
		return nil, err
	}
	played := slices.Clone(log)
	requests := make([]Request, len(log))
	var now time.Duration
	for next, done := 0, 0; done < len(log); {
		for ; next < len(log) && log[next].Arrival <= now; next++ {
			r := &requests[next]
			*r = Request{Prompt: log[next].Prompt, Output: log[next].Output, Tag: next}
			if err := e.Submit(log[next].Arrival, r); err != nil {
				return nil, fmt.Errorf("request %d of the log: %w", next, err)
			}
			r.Keys = ownKeys(next, log[next], c.BlockTokens) // of a length that the engine has taken
		}
		end, busy := e.Start(now)
		if !busy {
			now = log[next].Arrival // an idle engine has finished all that came
			continue
		}
		now = end
		for _, r := range e.End() {
			played[r.Tag].FirstToken, played[r.Tag].Finished = r.FirstToken, r.Finished
			done++
		}
	}
	return played, nil
}

// ownKeys names the content of request i's full blocks, which nobody else has; it finds them again after a preemption.
func ownKeys(i int, r EngineRecord, blockTokens int) []uint64 {
	keys := make([]uint64, (r.Prompt+r.Output)/blockTokens)
	for j := range keys {
		keys[j] = uint64(i+1)<<32 | uint64(j)
	}
	return keys
}
