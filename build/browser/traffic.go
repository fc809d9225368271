package browser

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"
)

// Turn sends one turn of a session to a gateway and reads the whole answer.
func Turn(ctx context.Context, gateway, session string, words, tokens int) error {
	content := session + strings.Repeat(" word", words)
	body, err := json.Marshal(map[string]any{"stream": true, "max_tokens": tokens, "messages": []map[string]string{{"role": "user", "content": content}}})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, gateway+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("content-type", "application/json")
	if session != "" {
		r.Header.Set("X-Session-ID", session)
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return err
}

// Work has agents come, talk for some turns that grow, and go, until ctx ends: traffic to look at. With the same seed the
// same agents come in the same order.
func Work(ctx context.Context, gateway string, agents int, seed uint64) {
	names := []string{"planner", "coder", "tester", "critic", "writer", "editor", "scout", "judge", "solver", "tutor", "clerk", "guide"}
	var all sync.WaitGroup
	for lane := range agents {
		random := rand.New(rand.NewPCG(seed, uint64(lane)))
		all.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				session := fmt.Sprintf("%s-%d", names[(lane+n*agents)%len(names)], 1+(lane+n*agents)/len(names))
				if random.IntN(8) == 0 {
					session = "" // somebody forgot the header
				}
				for turn := range 4 + random.IntN(8) {
					_ = Turn(ctx, gateway, session, 300*(turn+1), 16) // a gateway that restarts takes none
					pause(ctx, time.Duration(150+random.IntN(500))*time.Millisecond)
				}
				if session != "" && random.IntN(3) > 0 {
					release(ctx, gateway, session)
				}
			}
		})
	}
	all.Wait()
}

func release(ctx context.Context, gateway, session string) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, gateway+"/finish_session?session_id="+session, nil)
	if err != nil {
		return
	}
	if resp, err := http.DefaultClient.Do(r); err == nil {
		resp.Body.Close()
	}
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}
