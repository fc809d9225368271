package trace

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

// Rows as the data set's own page describes them.
const qwenRows = `{"chat_id": 55, "parent_chat_id": -1, "timestamp": 0.5, "input_length": 40, "output_length": 9, "type": "text", "turn": 1, "hash_ids": [0, 1, 2]}
{"chat_id": 60, "parent_chat_id": 7, "timestamp": 1.25, "input_length": 32, "output_length": 3, "type": "search", "turn": 3, "hash_ids": [0, 3]}
{"chat_id": 159, "parent_chat_id": 55, "timestamp": 61.114, "input_length": 64, "output_length": 132, "type": "text", "turn": 2, "hash_ids": [0, 1, 4, 5]}
{"chat_id": 160, "parent_chat_id": 159, "timestamp": 70, "input_length": 70, "output_length": 1, "type": "file", "turn": 3, "hash_ids": [0, 1, 4, 5]}
`

func TestQwen(t *testing.T) {
	r, format, err := Open(strings.NewReader(qwenRows), Options{})
	if err != nil || format != Qwen {
		t.Fatalf("format %q, %v", format, err)
	}
	got, err := ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	want := []Session{
		{ID: "55", BlockTokens: 16, Start: 500 * time.Millisecond, Turns: []Turn{
			{Input: 40, Output: 9, Blocks: []Run{{1, 2}}, Tail: 3},
			{At: 60614 * time.Millisecond, Input: 64, Output: 132, Blocks: []Run{{1, 2}, {5, 2}}},
			{At: 69500 * time.Millisecond, Input: 70, Output: 1, Blocks: []Run{{1, 2}, {5, 2}}}}},
		{ID: "60", BlockTokens: 16, Start: 1250 * time.Millisecond, Turns: []Turn{{Input: 32, Output: 3, Blocks: []Run{{1, 1}, {4, 1}}}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

func TestQwenBadLines(t *testing.T) {
	row := func(edit ...string) string {
		return strings.NewReplacer(edit...).Replace(`{"chat_id": 3, "parent_chat_id": -1, "timestamp": 1, "input_length": 16, "output_length": 1, "type": "text", "turn": 1, "hash_ids": [5]}`)
	}
	checkBadRows(t, Options{}, row("3", "1"), row("3", "2"), []badRow{
		{"no id", row(`"chat_id": 3, "p`, `"p`), "chat_id: missing"},
		{"negative id", row("3", "-3"), "chat_id: missing or negative"},
		{"again", row("3", "1"), "chat_id: 1 was there"},
		{"no time", row(`"timestamp": 1, `, ""), "timestamp: missing"},
		{"no turn", row(`"turn": 1`, `"turn": 0`), "turn: 0"},
		{"too many blocks", row("[5]", "[5, 6]"), "hash_ids: 2 blocks"},
		{"back in time", row("-1", "1", `p": 1`, `p": 0.5`), "before the request above it"},
	})
}
