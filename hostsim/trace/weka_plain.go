package trace

import (
	"encoding/json"
	"fmt"
)

// The plain form of WEKA's traces, as they were published, a whole session a line:
//
//	{"id": "trace_0095", "block_size": 64, "tool_tokens": 12262, "system_tokens": 2927, "requests": [REQUEST | SUB, ...]}
//	REQUEST = {"t": 9.0, "in": 71668, "out": 97, "hash_ids": [1, 2, ...], "api_time": 6.54, "think_time": 5.0, ...}
//	SUB     = {"t": 160.9, "type": "subagent", "requests": [REQUEST | SUB, ...], "status": "completed", ...}
//
// Times, blocks and sub-agents are as WEKAReader says. Other keys (models, stop reasons, time to first token) are passed
// over. A published file holds one session; several make a trace when they are put one after another.
type wekaPlainRow struct {
	ID       string             `json:"id"`
	Block    int                `json:"block_size"`
	Scope    string             `json:"hash_id_scope,omitempty"`
	Tool     int                `json:"tool_tokens"`
	System   int                `json:"system_tokens"`
	Requests []wekaPlainRequest `json:"requests"`
}

type wekaPlainRequest struct {
	T        *float64           `json:"t"`
	Type     string             `json:"type"`
	In       int                `json:"in,omitempty"`
	Out      int                `json:"out"`
	IDs      []uint64           `json:"hash_ids,omitempty"`
	API      *float64           `json:"api_time,omitempty"`
	Think    *float64           `json:"think_time,omitempty"`
	Requests []wekaPlainRequest `json:"requests,omitempty"`
	Status   string             `json:"status,omitempty"`
}

// The values of Type.
const (
	wekaSubAgent    = "subagent"
	wekaNonStreamed = "n"
)

// decodeWEKAPlain turns a plain row into the delta-encoded one that says the same.
func decodeWEKAPlain(text []byte) (wekaRow, error) {
	var row wekaPlainRow
	if err := json.Unmarshal(text, &row); err != nil {
		return wekaRow{}, err
	}
	if row.Block != WEKABlockTokens {
		return wekaRow{}, fmt.Errorf("block_size: %d instead of %d", row.Block, WEKABlockTokens)
	}
	requests, err := deltas(row.Requests, "requests")
	return wekaRow{ID: row.ID, Tool: row.Tool, Sys: row.System, Requests: requests, key: "requests", subKey: "requests"}, err
}

func deltas(plain []wekaPlainRequest, path string) ([]json.RawMessage, error) {
	encoded := make([]json.RawMessage, len(plain))
	for i, q := range plain {
		here := fmt.Sprintf("%s[%d]", path, i)
		var item any
		if q.Type == wekaSubAgent {
			sub, err := deltas(q.Requests, here+".requests")
			if err != nil {
				return nil, err
			}
			item = wekaSub{q.T, sub, q.Status}
		} else {
			ids, err := runsOf(q.IDs)
			if err != nil {
				return nil, fmt.Errorf("%s.hash_ids: %w", here, err)
			}
			ranges := make([][2]uint64, len(ids))
			for j, r := range ids {
				ranges[j] = [2]uint64{r.First, uint64(r.Count)}
			}
			item = []any{q.T, q.In, q.Out, q.Think, q.API, []any{0, ranges}}
		}
		text, err := json.Marshal(item)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", here, err)
		}
		encoded[i] = text
	}
	return encoded, nil
}
