package replica

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"
)

func newServer(t *testing.T, c Config) *Server {
	t.Helper()
	if c.Name == "" {
		c.Name = "r1"
	}
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func post(s *Server, path, body string) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	s.ServeHTTP(w, httptest.NewRequest("POST", path, strings.NewReader(body)))
	return w
}

// completion is what a test reads back from an answer.
type completion struct {
	Object  string
	Model   string
	Replica string
	Choices []struct {
		Message struct{ Content string }
		Delta   struct{ Content string }
		Text    string
		Finish  string `json:"finish_reason"`
	}
	Usage struct {
		Prompt     int `json:"prompt_tokens"`
		Completion int `json:"completion_tokens"`
		Total      int `json:"total_tokens"`
		Details    struct {
			Cached int `json:"cached_tokens"`
		} `json:"prompt_tokens_details"`
	}
}

func decode(t *testing.T, text string) completion {
	t.Helper()
	var c completion
	if err := json.Unmarshal([]byte(text), &c); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return c
}

func TestRecordedPromptHitsItsPrefix(t *testing.T) {
	s := newServer(t, Config{Name: "10.0.0.1:8000"})
	turns := []struct {
		body                string
		prompt, cached, out int
	}{
		{`{"sim_prompt":{"tokens":200,"blocks":[[10,3]]},"max_tokens":7}`, 200, 0, 7},
		{`{"sim_prompt":{"tokens":300,"blocks":[[10,3],[50,1]]},"max_completion_tokens":5}`, 300, 192, 5},
		{`{"sim_prompt":{"tokens":256,"blocks":[[10,3],[50,1]]},"model":"m"}`, 256, 192, 16}, // all cached: the last is computed
		{`{"sim_prompt":{"tokens":260,"blocks":[[10,2],[12,1],[50,1]]}}`, 260, 256, 16},      // runs split otherwise
		{`{"sim_prompt":{"tokens":10}}`, 10, 0, 16},
	}
	var prompt, cached, output int64
	for i, turn := range turns {
		w := post(s, "/v1/chat/completions", turn.body)
		c := decode(t, w.Body.String())
		if w.Code != 200 || c.Usage.Prompt != turn.prompt || c.Usage.Details.Cached != turn.cached ||
			c.Usage.Completion != turn.out || c.Usage.Total != turn.prompt+turn.out {
			t.Errorf("turn %d: %d %+v, want %+v", i, w.Code, c.Usage, turn)
		}
		if w.Header().Get(ReplicaHeader) != "10.0.0.1:8000" || c.Replica != "10.0.0.1:8000" ||
			!strings.Contains(c.Choices[0].Message.Content, "10.0.0.1:8000") {
			t.Errorf("turn %d does not say who answered: %v %s", i, w.Header(), w.Body)
		}
		prompt, cached, output = prompt+int64(turn.prompt), cached+int64(turn.cached), output+int64(turn.out)
	}
	want := Stats{Requests: 5, PromptTokens: prompt, CachedTokens: cached, OutputTokens: output, CacheBlocks: 4}
	if got := s.Stats(); got != want {
		t.Errorf("stats %+v, want %+v", got, want)
	}
}

// A chat written by hand hits what it said before; white space between JSON tokens and other fields do not matter.
func TestHandMadeChat(t *testing.T) {
	s := newServer(t, Config{})
	first := `{"role":"user","content":"` + strings.Repeat("pinwheel ", 100) + `"}`
	w := post(s, "/v1/chat/completions", `{"model":"m","messages":[`+first+`]}`)
	a := decode(t, w.Body.String())
	if a.Usage.Details.Cached != 0 || a.Usage.Prompt != (len(first)+1)/BytesPerToken || a.Object != "chat.completion" {
		t.Fatalf("first turn: %+v", a)
	}
	spaced := strings.Replace(first, `:"`, `: "`, 1)
	b := decode(t, post(s, "/v1/chat/completions", `{"messages": [ `+spaced+`, {"role":"assistant","content":"x"}]}`).Body.String())
	if want := a.Usage.Prompt / 64 * 64; b.Usage.Details.Cached != want || want == 0 {
		t.Errorf("second turn: %d tokens cached, want %d", b.Usage.Details.Cached, want)
	}
	other := strings.Replace(first, "pinwheel", "Pinwheel", 1)
	c := decode(t, post(s, "/v1/chat/completions", `{"messages":[`+other+`]}`).Body.String())
	if c.Usage.Details.Cached != 0 {
		t.Errorf("another first word: %d tokens cached, want 0", c.Usage.Details.Cached)
	}
}

func TestTextCompletionGrows(t *testing.T) {
	s := newServer(t, Config{})
	text := strings.Repeat("0123456789abcdef", 16) // 256 bytes: with the opening quote one full block
	post(s, "/v1/completions", `{"prompt":"`+text+`"}`)
	c := decode(t, post(s, "/v1/completions", `{"prompt":"`+text+` and more"}`).Body.String())
	if c.Usage.Details.Cached != 64 || c.Object != "text_completion" || c.Choices[0].Text == "" {
		t.Errorf("%+v", c)
	}
}

func TestCapacityBoundsTheCache(t *testing.T) {
	s := newServer(t, Config{CacheBlocks: 4, BlockTokens: 16})
	for _, turn := range []struct {
		blocks string
		cached int
	}{{"[[1,4]]", 0}, {"[[11,4]]", 0}, {"[[1,4]]", 0}, {"[[1,4]]", 64}} {
		w := post(s, "/v1/completions", `{"sim_prompt":{"tokens":65,"blocks":`+turn.blocks+`}}`)
		if got := decode(t, w.Body.String()).Usage.Details.Cached; got != turn.cached {
			t.Errorf("blocks %s: %d cached, want %d", turn.blocks, got, turn.cached)
		}
	}
	if got := s.Stats().CacheBlocks; got != 4 {
		t.Errorf("%d blocks in the cache, want 4", got)
	}
}

func TestRefusals(t *testing.T) {
	s := newServer(t, Config{MaxBodyBytes: 300})
	for _, tt := range []struct {
		method, path, body string
		code               int
		reason             string
	}{
		{"POST", "/v1/chat/completions", `{`, 400, "not a JSON object"},
		{"POST", "/v1/chat/completions", `[]`, 400, "not a JSON object"},
		{"POST", "/v1/chat/completions", `{}`, 400, "messages: missing"},
		{"POST", "/v1/chat/completions", `{"prompt":"x"}`, 400, "messages: missing"},
		{"POST", "/v1/completions", `{"messages":[{}]}`, 400, "prompt: missing"},
		{"POST", "/v1/completions", `{"prompt":null}`, 400, "prompt: missing"},
		{"POST", "/v1/completions", `{"prompt":"x","max_tokens":-1}`, 400, "max_tokens: -1"},
		{"POST", "/v1/completions", `{"prompt":"x","n":0}`, 400, "n: 0 is outside 1 to 128"},
		{"POST", "/v1/completions", `{"prompt":"x","n":129}`, 400, "n: 129"},
		{"POST", "/v1/completions", `{"sim_prompt":{"tokens":0}}`, 400, "sim_prompt.tokens: 0"},
		{"POST", "/v1/completions", `{"sim_prompt":{"tokens":128,"blocks":[[1,3]]}}`, 400, "more than the 2 full blocks"},
		{"POST", "/v1/completions", `{"sim_prompt":{"tokens":128,"blocks":[[1,18446744073709551615]]}}`, 400, "more than the 2"},
		{"POST", "/v1/completions", `{"prompt":"` + strings.Repeat("x", 300) + `"}`, 413, "too large"},
		{"GET", "/v1/completions", ``, 404, "GET /v1/completions is not simulated; POST /v1/chat/completions, POST"},
		{"POST", "/chat/completions", ``, 404, "an SDK's base URL ends in /v1"},
	} {
		w := httptest.NewRecorder()
		s.ServeHTTP(w, httptest.NewRequest(tt.method, tt.path, strings.NewReader(tt.body)))
		if w.Code != tt.code || !strings.Contains(w.Body.String(), tt.reason) {
			t.Errorf("%s %s %.60s: %d %s, want %d and %q", tt.method, tt.path, tt.body, w.Code, w.Body, tt.code, tt.reason)
		}
		if w.Header().Get(ReplicaHeader) != "r1" {
			t.Errorf("%s %s: an error without the replica's name", tt.method, tt.path)
		}
	}
	if got := s.Stats(); got != (Stats{}) {
		t.Errorf("refused requests were counted: %+v", got)
	}
}

func TestStreamIsFlushedTokenByToken(t *testing.T) {
	step := make(chan struct{})
	s := newServer(t, Config{DecodePerToken: 1, TimeScale: 1, Wait: func(ctx context.Context, _ time.Duration) error {
		select {
		case <-step:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}})
	srv := httptest.NewServer(s)
	defer srv.Close()
	body := `{"messages":[{"role":"user","content":"hi"}],"stream":true,"max_tokens":50,"stream_options":{"include_usage":true}}`
	resp, err := http.Post(srv.URL+"/v1/chat/completions", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get("content-type"); got != "text/event-stream" {
		t.Errorf("content-type %q", got)
	}
	lines := bufio.NewScanner(resp.Body)
	event := func() string {
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				return data
			}
		}
		return ""
	}
	text := ""
	for i := range 50 {
		step <- struct{}{}
		c := decode(t, event()) // arrives although the next token is not yet allowed
		text += c.Choices[0].Delta.Content
		if finish := c.Choices[0].Finish; (i == 49) != (finish == "length") {
			t.Errorf("token %d: finish_reason %q", i, finish)
		}
	}
	if !strings.HasPrefix(text, "Replica r1 had 0 of ") {
		t.Errorf("text %q", text)
	}
	if c := decode(t, event()); c.Usage.Completion != 50 || len(c.Choices) != 0 {
		t.Errorf("usage event %+v", c)
	}
	if got := event(); got != "[DONE]" {
		t.Errorf("last event %q", got)
	}
}

// The latency model, with time itself replaced: prefill for what is not cached, decode for what is generated.
func TestTimes(t *testing.T) {
	var waits []time.Duration
	s := newServer(t, Config{
		PrefillPerToken: 100 * time.Microsecond, DecodePerToken: 10 * time.Millisecond, TimeScale: 0.5,
		Wait: func(_ context.Context, d time.Duration) error { waits = append(waits, d); return nil },
	})
	post(s, "/v1/completions", `{"sim_prompt":{"tokens":1000,"blocks":[[1,15]]},"max_tokens":4}`)
	post(s, "/v1/completions", `{"sim_prompt":{"tokens":1000,"blocks":[[1,15]]},"max_tokens":2,"stream":true}`)
	want := []time.Duration{50 * time.Millisecond, 20 * time.Millisecond, 2 * time.Millisecond, 5 * time.Millisecond, 5 * time.Millisecond}
	if !reflect.DeepEqual(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
}

func TestRequestOfAClientThatLeftEnds(t *testing.T) {
	for _, stream := range []bool{false, true} {
		ctx, leave := context.WithCancel(context.Background())
		steps := 0
		var s *Server
		s = newServer(t, Config{PrefillPerToken: 1, DecodePerToken: 1, TimeScale: 1, Wait: func(ctx context.Context, _ time.Duration) error {
			if got := s.Stats().Running; got != 1 {
				t.Errorf("%d running, want 1", got)
			}
			if steps++; steps == 2 {
				leave()
			}
			return ctx.Err()
		}})
		body := fmt.Sprintf(`{"prompt":"x","max_tokens":9,"stream":%v}`, stream)
		r := httptest.NewRequest("POST", "/v1/completions", strings.NewReader(body)).WithContext(ctx)
		s.ServeHTTP(httptest.NewRecorder(), r)
		if got := s.Stats(); got.Running != 0 || got.OutputTokens != 0 || steps != 2 {
			t.Errorf("stream %v: %+v after %d steps", stream, got, steps)
		}
	}
}

func TestMetricsAndHealth(t *testing.T) {
	s := newServer(t, Config{Model: `odd"name`})
	post(s, "/v1/completions", `{"sim_prompt":{"tokens":200,"blocks":[[1,3]]},"max_tokens":7}`)
	post(s, "/v1/completions", `{"sim_prompt":{"tokens":200,"blocks":[[1,3]]},"max_tokens":7}`)
	srv := httptest.NewServer(s)
	defer srv.Close()
	for path, lines := range map[string][]string{
		"/health": {},
		"/metrics": {
			`vllm:prefix_cache_queries_total{model_name="odd\"name"} 400`,
			`vllm:prefix_cache_hits_total{model_name="odd\"name"} 192`,
			`vllm:generation_tokens_total{model_name="odd\"name"} 14`,
			`vllm:num_requests_running{model_name="odd\"name"} 0`,
		},
	} {
		resp, err := http.Get(srv.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != 200 {
			t.Errorf("%s: %d, error %v", path, resp.StatusCode, err)
		}
		for _, line := range lines {
			if !strings.Contains(string(text), line+"\n") {
				t.Errorf("%s lacks %s:\n%s", path, line, text)
			}
		}
	}
}

func TestConfigIsValidated(t *testing.T) {
	for field, c := range map[string]Config{
		"Name":         {},
		"BlockTokens":  {Name: "r", BlockTokens: -1},
		"CacheBlocks":  {Name: "r", CacheBlocks: -1},
		"per token":    {Name: "r", DecodePerToken: -1},
		"TimeScale":    {Name: "r", TimeScale: -0.1},
		"MaxBodyBytes": {Name: "r", MaxBodyBytes: -1},
	} {
		if _, err := New(c); !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), field) {
			t.Errorf("%+v: error %v, want one about %s", c, err, field)
		}
	}
}
