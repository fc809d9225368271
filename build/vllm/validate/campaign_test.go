package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// Two prompts have as many blocks in common for an engine, which sees tokens, as for the model, which sees keys: those of
// the ids that both begin with. So they have where one goes on from another's answer.
func TestTokensKeepThePrefixes(t *testing.T) {
	sessions, err := trace.Bundled().ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range engines {
		for _, c := range campaigns(e, sessions) {
			if c.name == "four" || c.name == "flight" {
				continue // the requests of one
			}
			words := newVocabulary()
			var texts [][]int
			var keys [][]uint64
			shared := 0
			c.each(func(i int, r *request) {
				p := words.prompt(r)
				if len(p) != r.Prompt || len(p)+r.Output > e.longest() || slices.Max(p) > 319 || slices.Min(p) < 0 {
					t.Fatalf("%s, %s: request %d: %d tokens from %d to %d, want %d", e.Name, c.name, i, len(p), slices.Min(p), slices.Max(p), r.Prompt)
				}
				if r.Generated != nil {
					for range r.Output {
						p = append(p, answerToken(i))
					}
				}
				texts, keys = append(texts, p), append(keys, modelled(e, i, r).Keys)
				for j := max(0, i-15); j < i; j++ {
					blocks := commonPrefix(texts[i], texts[j]) / e.BlockTokens
					if k := commonPrefix(keys[i], keys[j]); k != blocks {
						t.Fatalf("%s, %s: requests %d and %d: %d blocks in common, %d keys", e.Name, c.name, j, i, blocks, k)
					}
					shared += blocks
				}
			})
			if shared == 0 {
				t.Errorf("%s, %s: no two requests share a block", e.Name, c.name)
			}
		}
	}
}

func commonPrefix[T comparable](a, b []T) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// Sessions overlap, each in its own order, and no request is lost.
func TestByTime(t *testing.T) {
	sessions := []trace.Session{
		{Turns: []trace.Turn{{Input: 64, Output: 1000}, {At: 30, Input: 128}}},
		{Turns: []trace.Turn{{At: 10, Input: 160}, {At: 20, Input: 1}}},
	}
	var got [][4]int
	for _, r := range byTime(sessions) {
		got = append(got, [4]int{r.Session, r.Turn, r.Prompt, r.Output})
	}
	if want := [][4]int{{0, 0, 4, maxOutput}, {1, 0, 10, 1}, {1, 1, 1, 1}, {0, 1, 8, 1}}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// The cases of edges and random fit the engine, their requests are numbered as their answers are, and a prompt goes on
// only from what came in a step before.
func TestCasesFit(t *testing.T) {
	for _, e := range engines {
		for _, c := range []campaign{{name: "edges", steps: edges(e)}, {name: "random", steps: random(e, 1, 80)}} {
			n, known := 0, 0
			for _, s := range c.steps {
				for i := range s.requests {
					r := &s.requests[i]
					if r.Turn != n+i || r.Prompt+r.Output > e.longest() {
						t.Errorf("%s, %s: request %d: %d and %d tokens, turn %d", e.Name, c.name, n+i, r.Prompt, r.Output, r.Turn)
					}
					for _, id := range r.IDs {
						if from := int(id &^ generatedSpace >> 20); id&generatedSpace != 0 && from >= known {
							t.Errorf("%s, %s: request %d goes on from answer %d", e.Name, c.name, n+i, from)
						}
					}
				}
				n += len(s.requests)
				known = n
			}
			if n < 80 {
				t.Errorf("%s, %s: %d requests", e.Name, c.name, n)
			}
		}
	}
}

// The table's columns are aligned, and a difference beyond the bounds is shown with its numbers.
func TestPrint(t *testing.T) {
	real := &recording{settings: engines[0], Campaign: "one", Rows: []row{{0, 0, 100, 1, 64}, {1, 0, 100, 1, 0}}}
	other := &recording{settings: engines[0], Campaign: "one", Rows: []row{{0, 0, 100, 1, 64}, {1, 0, 100, 1, 32}}}
	for _, test := range []struct {
		model  *recording
		flight int
		good   bool
	}{{real, 0, true}, {other, 0, false}, {other, 4, false}, {real, 4, true}} {
		var b bytes.Buffer
		header(&b)
		r := result{campaign{flight: test.flight}, real, test.model, real}
		r.print(&b, 0)
		lines := strings.Split(b.String(), "\n")
		if r.good() != test.good || len(lines[0]) != len(lines[1]) || !strings.Contains(lines[1], "32.00%") {
			t.Errorf("good %v, want %v:\n%s", r.good(), test.good, &b)
		}
		if shown := strings.Contains(b.String(), "number 1, session 1, turn 0, 100 tokens: vLLM hit 0, the model 32"); shown != (!test.good && test.flight == 0) {
			t.Errorf("%s", &b)
		}
	}
	preempted := *real
	preempted.Preemptions = 1
	if (result{campaign{}, real, &preempted, real}).good() {
		t.Error("one preemption more is good")
	}
}

// With free clients, four requests are under way for as long as there are four.
func TestFreeClients(t *testing.T) {
	m, err := replica.NewEngine(replica.EngineConfig{BlockTokens: 32, Blocks: 100, MaxBatchedTokens: 64, MaxSequences: 8, Step: pace{}})
	if err != nil {
		t.Fatal(err)
	}
	var requests []*replica.Request
	for i := range 40 {
		requests = append(requests, &replica.Request{Prompt: 10 + i, Output: 5, Tag: i})
	}
	if err := simulateFreely(m, requests, 4); err != nil {
		t.Fatal(err)
	}
	for i, r := range requests {
		if r.Finished == 0 || i < 4 && r.Submitted != 0 {
			t.Errorf("request %d: %+v", i, r)
		}
		under := 0
		for _, q := range requests {
			if q.Submitted <= r.Submitted && r.Submitted < q.Finished {
				under++
			}
		}
		if i >= 4 && (under > 4 || r.Submitted < requests[i-1].Submitted) {
			t.Errorf("request %d was sent with %d under way", i, under)
		}
	}
}
