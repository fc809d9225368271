package trace

import (
	"reflect"
	"slices"
	"strings"
	"testing"
)

const (
	tauBench = "testdata/taubench_airline_3x4.jsonl"
	neMoGym  = "testdata/nemogym_anyterminal_4.jsonl"
)

// Real conversations against integers that a separate script (another language, no code shared) took from the files.
func TestChatCounts(t *testing.T) {
	for _, tt := range []struct {
		path                                   string
		sessions, groups, turns, input, output int
	}{
		{tauBench, 12, 3, 220, 918_367, 17_810},
		{neMoGym, 4, 4, 56, 225_922, 11_324},
	} {
		for _, s := range sessionsOf(t, tt.path, Options{}) {
			checkReplays(t, s)
		}
		s := statsOf(t, tt.path, 0)
		got := []int{s.Sessions, s.Groups, s.Turns, s.PromptTokens, s.GeneratedTokens}
		if want := []int{tt.sessions, tt.groups, tt.turns, tt.input, tt.output}; !slices.Equal(got, want) {
			t.Errorf("%s: sessions, groups, turns, prompt and generated tokens %v, want %v", tt.path, got, want)
		}
	}
}

// All of tau-bench's conversations begin with one system prompt: with how a customer's message begins it makes 98 blocks.
// What he says is another text in each.
func TestChatSharesPrefixes(t *testing.T) {
	sessions := sessionsOf(t, tauBench, Options{})
	shared := func(i, j int) int {
		a, b := AppendBlocks(nil, sessions[i].Turns[0].Blocks), AppendBlocks(nil, sessions[j].Turns[0].Blocks)
		n := 0
		for n < min(len(a), len(b)) && a[n] == b[n] {
			n++
		}
		return n
	}
	for i := 1; i < len(sessions); i++ {
		if n := shared(0, i); n != 98 {
			t.Errorf("session 0 and %d share %d blocks, want 98", i, n)
		}
	}
	if sessions[0].ID != "2/0" || sessions[0].Group != "2" || sessions[11].Group != "4" {
		t.Errorf("names %q of %q", sessions[0].ID, sessions[0].Group)
	}
}

func TestChatByHand(t *testing.T) {
	// Messages of 40 and 48 bytes with their line's end.
	user := `{"role":"user","content":"01234567890"}`
	assistant := `{"role": "assistant", "content": "01234567890123"}`
	tests := []struct {
		name, row string
		want      Session
	}{
		{"a body", `{"model":"m","messages":[` + user + `]}`, Session{ID: "line 1", Turns: []Turn{{Input: 10}}}},
		{"one answer", `{"task_id":"a","trial":1,"messages":[` + user + `,` + assistant + `]}`,
			Session{ID: "a/1", Group: "a", Turns: []Turn{{Input: 10, Output: 12}}}},
		{"two messages of one answer, and what nobody answers", `{"messages":[` + strings.Join([]string{user, assistant, assistant, user, assistant, user}, ",") + `]}`,
			Session{ID: "line 1", Turns: []Turn{{Input: 10, Output: 24}, {Input: 44, Output: 12}}}},
	}
	for _, tt := range tests {
		r, format, err := Open(strings.NewReader(tt.row), Options{})
		if err != nil || format != Chat {
			t.Fatalf("%s: format %q, %v", tt.name, format, err)
		}
		got, err := r.Next()
		if err != nil {
			t.Fatalf("%s: %v", tt.name, err)
		}
		checkSession(t, got)
		for i := range got.Turns {
			got.Turns[i].Blocks = nil
		}
		tt.want.BlockTokens, tt.want.Replays = 16, true
		if !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%s:\ngot  %+v\nwant %+v", tt.name, got, tt.want)
		}
	}
}

func TestChatBadLines(t *testing.T) {
	const good = `{"task_id":1,"trial":0,"messages":[{"role":"user","content":"x"}]}`
	checkBadRows(t, Options{}, good, strings.Replace(good, "0", "1", 1), []badRow{
		{"again", good, `"1/0" was on line 1 already`},
		{"no messages", `{"messages":[]}`, "no messages"},
		{"no role", `{"messages":[{"content":"x"}]}`, "messages[0]: no role"},
		{"answer to nothing", `{"messages":[{"role":"assistant"},{"role":"user"}]}`, "message 0: generated"},
		{"a task of a list", `{"task_id":[],"messages":[{"role":"user"}]}`, "task_id"},
		{"a trial of a list", `{"task_id":1,"trial":[],"messages":[{"role":"user"}]}`, "trial"},
		{"not JSON", `{"messages":[`, "unexpected end"},
	})
	const gym = `{"responses_create_params":{"input":"do it"},"response":{"output":[{"type":"message","role":"assistant"}]},"_ng_task_index":1,"_ng_rollout_index":0}`
	checkBadRows(t, Options{}, gym, strings.Replace(gym, ":0", ":1", 1), []badRow{
		{"again", gym, `"1/0" was on line 1 already`},
		{"no input", `{"responses_create_params":{},"response":{}}`, "input: missing"},
		{"empty input", `{"responses_create_params":{"input":[]},"response":{}}`, "input: missing"},
		{"no type", `{"responses_create_params":{"input":"x"},"response":{"output":[{}]}}`, "response.output[0]: no type"},
	})
}
