package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// arm is one replay of the trace: a gateway, fresh replicas behind it, and what was seen of them.
type arm struct {
	name    string
	url     string
	fleet   *fleet
	release bool // tell the gateway when a session has finished

	mu     sync.Mutex
	served map[string]*tally // by replica
	moves  []string
	took   time.Duration
}

// tally is what one replica served, seen from the client's side.
type tally struct {
	sessions               map[string]bool
	turns                  int
	promptTokens, hitToken int
}

// replay runs all sessions at once, each turn after turn, and stops at the first error.
func (a *arm) replay(ctx context.Context, sessions []trace.Session, p *progress) error {
	a.served = map[string]*tally{}
	for _, address := range a.fleet.addresses {
		a.served[address] = &tally{sessions: map[string]bool{}}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, demoArmTimeout,
		fmt.Errorf("%s: the replay did not end within %v: is the machine busy?", a.name, demoArmTimeout))
	defer cancel()
	transport := &http.Transport{MaxIdleConnsPerHost: len(sessions)}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	begin := time.Now()
	errs := make(chan error, len(sessions))
	for _, s := range sessions {
		go func() { errs <- a.session(ctx, client, s, p) }()
	}
	var first error
	for range sessions {
		if err := <-errs; err != nil && first == nil {
			first = err
			if cause := context.Cause(ctx); cause != nil {
				first = cause
			}
			cancel()
		}
	}
	a.took = time.Since(begin)
	p.end()
	return first
}

// session sends one session's turns, each after the answer to the one before and its compressed pause.
func (a *arm) session(ctx context.Context, client *http.Client, s trace.Session, p *progress) error {
	home := ""
	for i, turn := range s.Turns {
		if err := pause(ctx, min(turn.Think, demoMaxThink)/demoSpeed); err != nil {
			return err
		}
		who, usage, err := a.turn(ctx, client, s.ID, turn)
		if err != nil {
			return fmt.Errorf("%s: session %s, turn %d: %w", a.name, s.ID, i+1, err)
		}
		if err := a.note(s.ID, i, home, who, usage); err != nil {
			return err
		}
		home = who
		p.step()
	}
	if !a.release {
		return nil
	}
	if err := finishSession(ctx, client, a.url, s.ID); err != nil {
		return fmt.Errorf("%s: session %s: %w", a.name, s.ID, err)
	}
	return nil
}

// note records who served a turn.
func (a *arm) note(session string, turn int, home, who string, u usage) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	t := a.served[who]
	if t == nil {
		return fmt.Errorf("%s: session %s, turn %d: answered by %q, which is no replica of this demo", a.name, session, turn+1, who)
	}
	t.sessions[session] = true
	t.turns++
	t.promptTokens += u.Prompt
	t.hitToken += u.Details.Cached
	if home != "" && home != who {
		a.moves = append(a.moves, fmt.Sprintf("%s, turn %d, from %s to %s", session, turn+1, home, who))
	}
	return nil
}

// usage is the part of an answer that the demo reads.
type usage struct {
	Prompt  int `json:"prompt_tokens"`
	Details struct {
		Cached int `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
}

// turnBody is a recorded prompt as simulated replicas understand it.
type turnBody struct {
	Model     string `json:"model"`
	MaxTokens int    `json:"max_tokens"`
	Sim       struct {
		Tokens int         `json:"tokens"`
		Blocks [][2]uint64 `json:"blocks"`
	} `json:"sim_prompt"`
}

func newTurnBody(t trace.Turn) ([]byte, error) {
	b := turnBody{Model: "sim", MaxTokens: t.Output}
	b.Sim.Tokens = t.Input
	for _, r := range t.Blocks {
		b.Sim.Blocks = append(b.Sim.Blocks, [2]uint64{r.First, uint64(r.Count)})
	}
	return json.Marshal(b)
}

// turn sends one turn and returns who answered.
func (a *arm) turn(ctx context.Context, client *http.Client, session string, t trace.Turn) (string, usage, error) {
	body, err := newTurnBody(t)
	if err != nil {
		return "", usage{}, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", usage{}, err
	}
	r.Header.Set("content-type", "application/json")
	r.Header.Set("x-session-id", session)
	resp, text, err := exchange(client, r)
	if err != nil {
		return "", usage{}, err
	}
	var answer struct{ Usage usage }
	if err := json.Unmarshal(text, &answer); err != nil {
		return "", usage{}, fmt.Errorf("the answer is not a completion: %w", err)
	}
	return resp.Header.Get(replica.ReplicaHeader), answer.Usage, nil
}

// finishSession tells the gateway that a session is over. It is the gateway's to answer, not a replica's.
func finishSession(ctx context.Context, client *http.Client, gateway, session string) error {
	target := gateway + "/finish_session?session_id=" + url.QueryEscape(session)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, target, nil)
	if err != nil {
		return err
	}
	resp, _, err := exchange(client, r)
	if err != nil {
		return fmt.Errorf("finish_session: %w", err)
	}
	if who := resp.Header.Get(replica.ReplicaHeader); who != "" {
		return fmt.Errorf("finish_session was forwarded to %s", who)
	}
	return nil
}

// exchange sends a request and reads the whole answer, which must be 200.
func exchange(client *http.Client, r *http.Request) (*http.Response, []byte, error) {
	resp, err := client.Do(r)
	if err != nil {
		return nil, nil, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, nil, err
	}
	if resp.StatusCode != http.StatusOK {
		who := resp.Header.Get(replica.ReplicaHeader)
		if who == "" {
			who = "the gateway"
		}
		return nil, nil, fmt.Errorf("%s answered %s: %.200s", who, resp.Status, text)
	}
	return resp, text, nil
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// agrees compares what clients saw with what the replicas counted.
func (a *arm) agrees() error {
	var errs []error
	for i, address := range a.fleet.addresses {
		seen, counted := a.served[address], a.fleet.replicas[i].Stats()
		if int64(seen.turns) != counted.Requests || int64(seen.hitToken) != counted.CachedTokens {
			errs = append(errs, fmt.Errorf("%s: clients saw %d turns and %d cached tokens of %s, which counted %d and %d", a.name,
				seen.turns, seen.hitToken, address, counted.Requests, counted.CachedTokens))
		}
	}
	return errors.Join(errs...)
}

// rows returns the replicas' tallies in the fleet's order.
func (a *arm) rows() []demoRow {
	var rows []demoRow
	for _, address := range a.fleet.addresses {
		t := a.served[address]
		rows = append(rows, demoRow{Replica: address, Sessions: len(t.sessions), Turns: t.turns,
			PromptTokens: t.promptTokens, CachedTokens: t.hitToken})
	}
	return rows
}

// sortedMoves returns the moves in a fixed order.
func (a *arm) sortedMoves() []string { return slices.Sorted(slices.Values(a.moves)) }
