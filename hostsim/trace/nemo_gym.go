package trace

import (
	"encoding/json"
	"errors"
	"fmt"
)

// decodeNeMoGym reads a rollout as NeMo-Gym writes it, in the items of OpenAI's responses API:
//
//	{"responses_create_params": {"instructions": null, "tools": [...], "input": [{"role": "user", "content": "..."}]},
//	 "response": {"output": [{"type": "message", "role": "assistant", ...}, {"type": "function_call", ...},
//	 {"type": "function_call_output", ...}, ...]}, "_ng_task_index": 1, "_ng_rollout_index": 0}
//
// The prompt is instructions, tools and input. Of the output, what a function answered is part of a prompt, as are
// messages of other roles than assistant; everything else is generated. The rollouts of a task are a group. Other keys are
// passed over: token ids too, which the known files leave empty.
func decodeNeMoGym(text []byte, line int) (conversation, error) {
	var row struct {
		Params struct {
			Instructions json.RawMessage   `json:"instructions"`
			Tools        []json.RawMessage `json:"tools"`
			Input        json.RawMessage   `json:"input"`
		} `json:"responses_create_params"`
		Response struct {
			Output []json.RawMessage `json:"output"`
		} `json:"response"`
		Task    *int `json:"_ng_task_index"`
		Rollout *int `json:"_ng_rollout_index"`
	}
	if err := json.Unmarshal(text, &row); err != nil {
		return conversation{}, err
	}
	c := conversation{id: fmt.Sprintf("line %d", line)}
	if row.Task != nil && row.Rollout != nil {
		c.group = fmt.Sprint(*row.Task)
		c.id = fmt.Sprintf("%d/%d", *row.Task, *row.Rollout)
	}
	if string(row.Params.Instructions) != "null" && len(row.Params.Instructions) > 0 {
		c.messages = append(c.messages, message{row.Params.Instructions, false})
	}
	for _, tool := range row.Params.Tools {
		c.messages = append(c.messages, message{tool, false})
	}
	input := []json.RawMessage{row.Params.Input} // a text, or a list
	if len(row.Params.Input) > 0 && row.Params.Input[0] == '[' {
		input = nil
		if err := json.Unmarshal(row.Params.Input, &input); err != nil {
			return conversation{}, err
		}
	}
	if len(input) == 0 || len(input[0]) == 0 {
		return conversation{}, errors.New("responses_create_params.input: missing or empty")
	}
	for _, item := range input {
		c.messages = append(c.messages, message{item, false})
	}
	for i, item := range row.Response.Output {
		var kind struct {
			Type string `json:"type"`
			Role string `json:"role"`
		}
		if err := json.Unmarshal(item, &kind); err != nil || kind.Type+kind.Role == "" {
			return conversation{}, fmt.Errorf("response.output[%d]: no type", i)
		}
		given := kind.Type == "function_call_output" || kind.Role != "" && kind.Role != "assistant"
		c.messages = append(c.messages, message{item, !given})
	}
	return c, nil
}
