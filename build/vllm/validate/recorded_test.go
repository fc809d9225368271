package main

import (
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/vllm/engine"
	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// recorded calls f with each engine, campaign and what was recorded of it.
func recorded(t *testing.T, f func(t *testing.T, e settings, c campaign, kept *recording)) {
	t.Helper()
	sessions, err := trace.Bundled().ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range engines {
		e.Version = engine.Version
		for _, c := range campaigns(e, sessions) {
			t.Run(e.Name+"/"+c.name, func(t *testing.T) {
				kept := &recording{settings: e, Campaign: c.name}
				if err := kept.read("testdata"); err != nil {
					t.Fatal(err)
				}
				if err := kept.fits(e, c); err != nil {
					t.Fatalf("%v; make validate-engine UPDATE=-update records anew", err)
				}
				f(t, e, c, kept)
			})
		}
	}
}

// The simulated engine finds in its cache what the real one did: the same tokens of every request where the real
// scheduler had them in a known order, and the same share where it did not.
func TestModelAnswersAsTheEngine(t *testing.T) {
	recorded(t, func(t *testing.T, e settings, c campaign, kept *recording) {
		model, err := simulate(e, c)
		if err != nil {
			t.Fatal(err)
		}
		if gap := math.Abs(model.hits().rate() - kept.hits().rate()); gap > maxHitGap {
			t.Errorf("hit rate: vLLM %.4f, the model %.4f", kept.hits().rate(), model.hits().rate())
		}
		if c.flight > 0 {
			return
		}
		for i, x := range kept.Rows {
			if y := model.Rows[i]; x != y {
				t.Errorf("request %d: vLLM %+v, the model %+v", i, x, y)
			}
		}
		if model.Preemptions != kept.Preemptions {
			t.Errorf("preemptions: vLLM %d, the model %d", kept.Preemptions, model.Preemptions)
		}
	})
}

// The recordings tell the right model from one with a block too many or too few, another budget of a step, or a place
// more. -v shows how many answers differ.
func TestRecordingsTellNearbyEnginesApart(t *testing.T) {
	changes := map[string]func(*settings){
		"a block more":  func(e *settings) { e.Blocks++ },
		"a block fewer": func(e *settings) { e.Blocks-- },
		"half a budget": func(e *settings) { e.MaxBatchedTokens /= 2 },
		"a place more":  func(e *settings) { e.MaxSequences++ },
	}
	told := map[string]int{}
	recorded(t, func(t *testing.T, e settings, c campaign, kept *recording) {
		if c.flight > 0 {
			return
		}
		for name, change := range changes {
			near := e
			change(&near)
			model, err := simulate(near, c)
			if errors.Is(err, replica.ErrTooLong) {
				continue
			}
			if err != nil {
				t.Fatal(err)
			}
			n := len(kept.Rows) - equal(model, kept)
			t.Logf("%s: %d of %d answers differ", name, n, len(kept.Rows))
			told[name] += n
		}
	})
	for name := range changes {
		if told[name] == 0 {
			t.Errorf("%s, and every answer is the same", name)
		}
	}
}

// The recordings show what they are for: contents that were evicted, requests that were preempted, hits of all sizes.
func TestRecordingsAreOfAFullPool(t *testing.T) {
	preemptions := 0
	recorded(t, func(t *testing.T, e settings, c campaign, kept *recording) {
		preemptions += kept.Preemptions
		rate := kept.hits().rate()
		// Were nothing ever evicted, nine tenths of the trace's tokens would be hits.
		if rate < 0.05 || rate > 0.7 {
			t.Errorf("%.0f%% of tokens are hits", 100*rate)
		}
		for _, x := range kept.Rows {
			if x.Cached%e.BlockTokens != 0 || x.Cached >= x.Prompt {
				t.Errorf("%+v: not whole blocks, or no token left to compute", x)
			}
		}
	})
	if preemptions < 5 {
		t.Errorf("%d preemptions", preemptions)
	}
}

func TestRecordingKeepsAll(t *testing.T) {
	dir := t.TempDir()
	r := &recording{settings: engines[0], Campaign: "c", Preemptions: 3, Rows: []row{{0, 0, 5, 1, 0}, {7, 2, 4000, 48, 3968}}}
	if err := r.write(dir); err != nil {
		t.Fatal(err)
	}
	back := &recording{settings: settings{Name: r.Name}, Campaign: "c"}
	if err := back.read(dir); err != nil {
		t.Fatal(err)
	}
	if back.settings != r.settings || back.Preemptions != 3 || !slices.Equal(back.Rows, r.Rows) {
		t.Errorf("%+v became %+v", r, back)
	}
	// Each row's place in the campaign counts, and so does each number.
	c := campaign{name: "c", steps: []step{{requests: []request{{Prompt: 5, Output: 1}}}, {requests: []request{{Session: 7, Turn: 2, Prompt: 4000, Output: 48}}}}}
	if err := back.fits(engines[0], c); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(*settings, *campaign){
		"another engine":   func(e *settings, _ *campaign) { e.Blocks++ },
		"another campaign": func(_ *settings, c *campaign) { c.name = "d" },
		"another prompt":   func(_ *settings, c *campaign) { c.steps[1].requests[0].Prompt++ },
		"fewer requests":   func(_ *settings, c *campaign) { c.steps = c.steps[:1] },
		"more requests":    func(_ *settings, c *campaign) { c.steps = append(c.steps, c.steps[0]) },
	} {
		e, d := engines[0], campaign{name: c.name}
		for _, s := range c.steps {
			d.steps = append(d.steps, step{requests: slices.Clone(s.requests)})
		}
		change(&e, &d)
		if err := back.fits(e, d); !errors.Is(err, errRecording) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, text := range []string{"", "[1]", "{}\n[1,2,3]x"} {
		if err := os.WriteFile(back.path(dir), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if err := back.read(dir); !errors.Is(err, errRecording) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
