//go:build vllm

package vllm

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// While it pauses, a replica is healthy and takes requests, which it answers afterwards, from an empty cache.
func pause(t *testing.T, r *replica) {
	prompt := strings.Repeat("a prompt of several blocks ", 20)
	r.complete(t, prompt)()
	if cached := r.complete(t, prompt)(); cached < 32 {
		t.Fatalf("%d tokens of a known prompt are cached", cached)
	}
	for _, step := range [][2]string{{http.MethodPost, "/pause"}, {http.MethodGet, "/health"}} {
		if _, err := r.ask(step[0], step[1]); err != nil {
			t.Fatal(err)
		}
	}
	answer := r.complete(t, prompt)
	if _, err := r.ask(http.MethodGet, "/health"); err != nil {
		t.Error(err)
	}
	if _, err := r.ask(http.MethodPost, "/resume"); err != nil {
		t.Fatal(err)
	}
	if cached := answer(); cached != 0 {
		t.Errorf("%d tokens are cached after a pause, want none", cached)
	}
}

// complete sends a prompt and returns a function that reads the answer: how many of its tokens were cached.
func (r *replica) complete(t *testing.T, prompt string) func() int {
	t.Helper()
	conn, err := net.Dial("tcp", r.addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	if err := conn.SetDeadline(time.Now().Add(10 * time.Minute)); err != nil {
		t.Fatal(err)
	}
	body := fmt.Sprintf(`{"model":"tiny","max_tokens":1,"prompt":%q}`, prompt)
	const head = "POST /v1/completions HTTP/1.1\r\nHost: vllm\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
	if _, err := fmt.Fprintf(conn, head+"%s", len(body), body); err != nil {
		t.Fatal(err)
	}
	return func() int {
		t.Helper()
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		if err != nil {
			t.Fatal(err)
		}
		var answer struct {
			Usage struct {
				Details struct {
					Cached int `json:"cached_tokens"`
				} `json:"prompt_tokens_details"`
			}
		}
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("a completion: %s, %v", response.Status, err)
		}
		return answer.Usage.Details.Cached
	}
}
