package replica

import (
	"errors"
	"math"
	"slices"
	"testing"
	"time"
)

// perToken is a step model for hand-made numbers: a step takes a millisecond, and a microsecond a token.
type perToken struct{}

func (perToken) StepTime(b Batch) time.Duration {
	return time.Millisecond + time.Duration(b.Tokens)*time.Microsecond
}

func newTestEngine(t testing.TB, c EngineConfig) *Engine {
	t.Helper()
	e, err := NewEngine(c)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func submit(t testing.TB, e *Engine, now time.Duration, requests ...*Request) {
	t.Helper()
	for _, r := range requests {
		if err := e.Submit(now, r); err != nil {
			t.Fatal(err)
		}
	}
}

// run steps e until it is idle.
func run(e *Engine, now time.Duration) (end time.Duration) {
	for end, busy := e.Start(now); busy; end, busy = e.Start(now) {
		now = end
		e.End()
	}
	return now
}

// prompt returns keys for n blocks, those of family f.
func keys(f, n int) []uint64 {
	var k []uint64
	for i := range n {
		k = append(k, uint64(f)<<32|uint64(i))
	}
	return k
}

func TestEngineOneRequest(t *testing.T) {
	e := newTestEngine(t, EngineConfig{BlockTokens: 4, Blocks: 10, MaxBatchedTokens: 6, MaxSequences: 2, Step: perToken{}})
	r := &Request{Prompt: 10, Output: 3, Keys: keys(1, 2)}
	submit(t, e, time.Second, r)
	end := run(e, 2*time.Second)
	// 6 tokens, 4 tokens and the first of the answer, two steps of one token.
	want := 2*time.Second + 4*time.Millisecond + 12*time.Microsecond
	if end != want || r.Finished != want || r.Submitted != time.Second || r.Admitted != 2*time.Second ||
		r.FirstToken != 2*time.Second+2*time.Millisecond+10*time.Microsecond {
		t.Fatalf("ended at %v, want %v: %+v", end, want, r)
	}
	// 12 tokens were computed, the 13th was not: three full blocks, one of which nobody else can find.
	got := e.Stats()
	if got != (EngineStats{Requests: 1, PromptTokens: 10, QueriedTokens: 10, OutputTokens: 3, Steps: 4,
		Busy: want - 2*time.Second, Cached: 3}) {
		t.Fatalf("%+v", got)
	}
	again := &Request{Prompt: 10, Output: 1, Keys: keys(1, 2)}
	submit(t, e, end, again)
	run(e, end)
	if again.Cached != 8 {
		t.Fatalf("found %d tokens again, want 8", again.Cached)
	}
}

func TestEngineRefuses(t *testing.T) {
	for _, c := range []EngineConfig{
		{Blocks: 1, MaxBatchedTokens: 1, MaxSequences: 1},
		{BlockTokens: 1, MaxBatchedTokens: 1, MaxSequences: 1},
		{BlockTokens: 1, Blocks: 1, MaxSequences: 1},
		{BlockTokens: 1, Blocks: 1, MaxBatchedTokens: 1},
		{BlockTokens: 1, Blocks: maxBlocks + 1, MaxBatchedTokens: 1, MaxSequences: 1},
		{BlockTokens: maxTokens + 1, Blocks: 1, MaxBatchedTokens: 1, MaxSequences: 1},
	} {
		if _, err := NewEngine(c); !errors.Is(err, ErrConfig) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	e := newTestEngine(t, EngineConfig{BlockTokens: 4, Blocks: 3, MaxBatchedTokens: 6, MaxSequences: 2})
	for _, c := range []struct {
		prompt, output int
		want           error
	}{
		{12, 1, nil}, {12, 0, nil}, {10, 3, nil}, {12, 2, ErrTooLong}, {13, 0, ErrTooLong}, {0, 1, ErrRequest}, {1, -1, ErrRequest},
		{maxTokens, 1, ErrTooLong}, {maxTokens + 1, 1, ErrRequest}, {math.MaxInt, 1, ErrRequest}, {1, math.MaxInt, ErrRequest},
	} {
		r := &Request{Prompt: c.prompt, Output: c.output}
		if err := e.Submit(0, r); !errors.Is(err, c.want) {
			t.Errorf("%d+%d: %v, want %v", c.prompt, c.output, err, c.want)
		} else if err == nil && !errors.Is(e.Submit(0, r), ErrRequest) {
			t.Errorf("%d+%d: submitted twice", c.prompt, c.output)
		}
	}
	run(e, 0)
	if got := e.Stats(); got.Held != 0 || got.OutputTokens != 5 {
		t.Fatalf("%+v", got)
	}
	if !slices.Equal(e.running, nil) {
		t.Fatal("not idle")
	}
}
