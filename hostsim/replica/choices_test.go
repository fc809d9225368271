package replica

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// Several answers to one prompt: the prompt counts once, what is generated once for each.
func TestChoices(t *testing.T) {
	s := newServer(t, Config{})
	var whole struct {
		Choices []struct {
			Index   int
			Message struct{ Role, Content string }
		}
		Usage struct {
			Prompt int `json:"prompt_tokens"`
			Output int `json:"completion_tokens"`
		}
	}
	w := post(s, "/v1/chat/completions", `{"sim_prompt":{"tokens":200},"max_tokens":7,"n":3}`)
	if err := json.Unmarshal(w.Body.Bytes(), &whole); err != nil {
		t.Fatal(err)
	}
	if len(whole.Choices) != 3 || whole.Usage.Prompt != 200 || whole.Usage.Output != 21 {
		t.Errorf("%+v, want three choices, 200 prompt tokens and 21 generated", whole)
	}
	for i, c := range whole.Choices {
		if c.Index != i || c.Message.Role != "assistant" || c.Message.Content == "" {
			t.Errorf("choice %d is %+v", i, c)
		}
	}
	if st := s.Stats(); st.Requests != 1 || st.PromptTokens != 200 || st.OutputTokens != 21 {
		t.Errorf("stats %+v", st)
	}
}

// A generation that nobody bounds ends by itself: helpers of SDKs take "length" for an error.
func TestFinishReason(t *testing.T) {
	for body, want := range map[string]string{
		`{"sim_prompt":{"tokens":9}}`:                            "stop",
		`{"sim_prompt":{"tokens":9},"max_tokens":null}`:          "stop",
		`{"sim_prompt":{"tokens":9},"max_tokens":5}`:             "length",
		`{"sim_prompt":{"tokens":9},"max_completion_tokens":16}`: "length",
	} {
		c := decode(t, post(newServer(t, Config{}), "/v1/chat/completions", body).Body.String())
		if c.Choices[0].Finish != want {
			t.Errorf("%s: finish_reason %q, want %q", body, c.Choices[0].Finish, want)
		}
		streamed := post(newServer(t, Config{}), "/v1/chat/completions", strings.TrimSuffix(body, "}")+`,"stream":true}`).Body.String()
		if strings.Count(streamed, `"finish_reason":"`+want+`"`) != 1 {
			t.Errorf("%s: streamed without one %q\n%s", body, want, streamed)
		}
	}
}

// What SDKs ask of a stream: each choice begins with its role and ends with a reason, and all events are of one kind.
func TestStreamIsWhatSDKsPutTogether(t *testing.T) {
	for path, kind := range map[string]string{"/v1/chat/completions": "chat.completion.chunk", "/v1/completions": "text_completion"} {
		s := newServer(t, Config{})
		body := `{"sim_prompt":{"tokens":9},"max_tokens":4,"n":2,"stream":true,"stream_options":{"include_usage":true}}`
		var order []string
		for _, event := range strings.Split(strings.TrimSpace(post(s, path, body).Body.String()), "\n\n") {
			if event == "data: [DONE]" {
				order = append(order, "done")
				continue
			}
			var c struct {
				Object  string
				Choices []struct {
					Index  int
					Delta  struct{ Role string }
					Finish string `json:"finish_reason"`
				}
				Usage struct {
					Output int `json:"completion_tokens"`
				}
			}
			if err := json.Unmarshal([]byte(strings.TrimPrefix(event, "data: ")), &c); err != nil {
				t.Fatalf("%v in %q", err, event)
			}
			if c.Object != kind {
				t.Errorf("%s: an event of kind %q, want %q", path, c.Object, kind)
			}
			if len(c.Choices) == 0 {
				order = append(order, fmt.Sprint("usage ", c.Usage.Output))
			} else {
				order = append(order, strings.TrimSpace(fmt.Sprint(c.Choices[0].Index, c.Choices[0].Delta.Role, c.Choices[0].Finish)))
			}
		}
		role := "assistant"
		if kind == "text_completion" {
			role = ""
		}
		want := []string{"0" + role, "1" + role, "0", "1", "0", "1", "0length", "1length", "usage 8", "done"}
		if fmt.Sprint(order) != fmt.Sprint(want) {
			t.Errorf("%s: events %q, want %q", path, order, want)
		}
	}
}
