package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/vllm/engine"
)

// A vLLM that does not start is an error that shows why, and leaves no folder.
func TestServeShowsWhyNot(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", filepath.Join(dir, "tmp"))
	for _, d := range []string{"tmp", "venv/bin"} {
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	program := "#!/bin/sh\necho no such device: $1\nexit 3\n"
	if err := os.WriteFile(filepath.Join(dir, "venv/bin/vllm"), []byte(program), 0o755); err != nil {
		t.Fatal(err)
	}
	_, err := serve(t.Context(), engine.Engine{Dir: dir}, engines[0])
	if !errors.Is(err, errServer) || !strings.Contains(err.Error(), "it has ended") || !strings.Contains(err.Error(), "no such device: serve") {
		t.Errorf("%v", err)
	}
	left, err := os.ReadDir(filepath.Join(dir, "tmp"))
	if err != nil || len(left) > 0 {
		t.Errorf("left over: %v, %v", left, err)
	}
}

// standIn answers as a vLLM whose cache holds whatever was asked before, one block of 32 tokens after another.
type standIn struct {
	mu      sync.Mutex
	known   map[string]bool
	refuses int // resets
	asked   []int
	allowed [][]int
}

func (s *standIn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.URL.Path {
	case "/reset_prefix_cache":
		s.refuses--
		if s.refuses < 0 {
			s.known = map[string]bool{}
		}
		fmt.Fprintf(w, `{"success": %v}`, s.refuses < 0)
	case "/metrics":
		io.WriteString(w, "# HELP vllm:num_preemptions_total x\nvllm:num_preemptions_total{engine=\"0\"} 7.0\n"+
			"vllm:cache_config_info{block_size=\"32\",num_gpu_blocks=\"512\",num_gpu_blocks_override=\"None\"} 1.0\n")
	case "/v1/completions":
		var in struct {
			Prompt  []int
			Max     int   `json:"max_tokens"`
			Allowed []int `json:"allowed_token_ids"`
		}
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil || len(in.Prompt) == 13 {
			http.Error(w, "refused", http.StatusBadRequest)
			return
		}
		cached := 0
		for n := 32; n < len(in.Prompt); n += 32 {
			if key := fmt.Sprint(in.Prompt[:n]); s.known[key] {
				cached = n
			} else {
				s.known[key] = true
			}
		}
		s.asked = append(s.asked, len(in.Prompt))
		s.allowed = append(s.allowed, in.Allowed)
		fmt.Fprintf(w, `{"usage": {"prompt_tokens": %d, "completion_tokens": %d, "prompt_tokens_details": {"cached_tokens": %d}}}`, len(in.Prompt), in.Max, cached)
	default:
		http.NotFound(w, r)
	}
}

// A campaign is played in its order, and answers are put to their requests.
func TestPlay(t *testing.T) {
	stand := &standIn{refuses: 2, known: map[string]bool{}}
	web := httptest.NewServer(stand)
	defer web.Close()
	v := &server{url: web.URL}
	s := &script{}
	s.ask(32, text(1, 24))
	s.ask(4, slices.Concat(text(1, 24), generated(0, 8), text(2, 1)))
	s.ask(4, slices.Concat(text(1, 24), generated(0, 8), text(3, 1)))
	s.ask(4, text(1, 24))
	s.steps[3].reset = true
	r, err := play(t.Context(), v, engines[0], campaign{name: "c", steps: s.steps})
	if err != nil {
		t.Fatal(err)
	}
	if want := []row{{0, 0, 96, 32, 0}, {0, 1, 132, 4, 64}, {0, 2, 132, 4, 128}, {0, 3, 96, 4, 0}}; !slices.Equal(r.Rows, want) || r.Preemptions != 0 {
		t.Errorf("%+v, want %v", r, want)
	}
	// Of each request the model has another answer, which the prompts that go on from it have as well.
	if want := [][]int{{0}, {1}, {2}, {3}}; !slices.EqualFunc(stand.allowed, want, slices.Equal) {
		t.Errorf("allowed were %v, want %v", stand.allowed, want)
	}
	if blocks, err := v.blocks(t.Context()); blocks != 512 || err != nil {
		t.Errorf("%d blocks, %v", blocks, err)
	}
	// Free clients ask for all, each once.
	stand.asked = nil
	free := campaign{name: "f", flight: 3}
	for i := range 20 {
		free.steps = append(free.steps, step{requests: []request{{Session: i, IDs: text(i, i+1), Prompt: 4 * (i + 1), Output: 1}}})
	}
	if r, err = play(t.Context(), v, engines[0], free); err != nil {
		t.Fatal(err)
	}
	slices.Sort(stand.asked)
	for i, x := range r.Rows {
		if x.Session != i || stand.asked[i] != x.Prompt || len(stand.asked) != 20 {
			t.Errorf("request %d: %+v; asked %v", i, x, stand.asked)
		}
	}
	// What is refused ends the campaign, and its text is in the error.
	free.steps[7].requests[0].Prompt, free.steps[7].requests[0].IDs = 13, nil
	for _, flight := range []int{0, 3} {
		free.flight = flight
		if _, err = play(t.Context(), v, engines[0], free); !errors.Is(err, errServer) || !strings.Contains(err.Error(), "refused") {
			t.Errorf("%d clients: %v", flight, err)
		}
	}
}
