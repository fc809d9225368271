package trace

import (
	"errors"
	"fmt"
	"strconv"
)

// QwenBlockTokens is the size of a block in the qwen-bailian traces, in tokens.
const QwenBlockTokens = 16

// qwen reads the traces of Qwen's service on Aliyun Bailian (alibaba-edu/qwen-bailian-usagetraces-anon), a request a line
// in order of time:
//
//	{"chat_id": 159, "parent_chat_id": 55, "timestamp": 61.114, "input_length": 521, "output_length": 132,
//	 "type": "text", "turn": 2, "hash_ids": [1089, 1090, 1091, ...]}
//
// timestamp is in seconds. chat_id names the request, and parent_chat_id the one that it goes on from, -1 where there is
// none. A session is a request without a parent and all that go on from it, named by its chat_id; a request whose parent
// is not in the trace begins one, too. The last id stands for the rest of the prompt, full or not; a row without it is
// taken as well. type is not kept, and turn is only checked.
type qwen struct {
	asRead

	sessions map[int64]string // of each request
}

func (*qwen) blockTokens() int { return QwenBlockTokens }

type qwenRow struct {
	Chat      *int64   `json:"chat_id"`
	Parent    int64    `json:"parent_chat_id"`
	Timestamp *float64 `json:"timestamp"`
	Input     int      `json:"input_length"`
	Output    int      `json:"output_length"`
	Type      string   `json:"type"`
	Turn      int      `json:"turn"`
	IDs       []uint64 `json:"hash_ids"`
}

func (d *qwen) decode(text []byte) (request, error) {
	row := qwenRow{Parent: -1}
	if err := strictUnmarshal(text, &row); err != nil {
		return request{}, err
	}
	switch {
	case row.Chat == nil || *row.Chat < 0:
		return request{}, errors.New("chat_id: missing or negative")
	case row.Timestamp == nil:
		return request{}, errors.New("timestamp: missing")
	case row.Turn < 1:
		return request{}, fmt.Errorf("turn: %d", row.Turn)
	case d.sessions[*row.Chat] != "":
		return request{}, fmt.Errorf("chat_id: %d was there already", *row.Chat)
	}
	q, err := newRequest(*row.Timestamp, row.Input, row.Output)
	if err != nil {
		return request{}, err
	}
	ids, err := runsOf(row.IDs)
	if err != nil {
		return request{}, fmt.Errorf("hash_ids: %w", err)
	}
	if err := q.turn.splitBlocks(ids, QwenBlockTokens); err != nil {
		return request{}, fmt.Errorf("hash_ids: %w", err)
	}
	if q.session = d.sessions[row.Parent]; q.session == "" {
		q.session = strconv.FormatInt(*row.Chat, 10)
	}
	if d.sessions == nil {
		d.sessions = map[int64]string{}
	}
	d.sessions[*row.Chat] = q.session
	return q, nil
}
