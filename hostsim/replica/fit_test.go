package replica

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// linearStep is a model of three costs: of a step, of a prompt token, of a token of context. Seconds.
type linearStep [3]float64

func (s linearStep) StepTime(b Batch) time.Duration {
	return seconds(s[0] + s[1]*float64(b.Prefill) + s[2]*float64(b.Context))
}

func linear(v []float64) StepModel { return linearStep(v) }

var (
	fitConfig = EngineConfig{BlockTokens: 16, Blocks: 800, MaxBatchedTokens: 512, MaxSequences: 24}
	linearFit = []parameter{
		{"step", 0.001, 0.05, 0.02},
		{"prompt", 1e-5, 1e-3, 3e-4},
		{"context", 1e-7, 1e-5, 4e-6},
	}
	truth = linearStep{0.008, 1.2e-4, 1.5e-6}
)

// servedLog is a log as an engine with this step would have written it, load going up and down.
func servedLog(t *testing.T, c EngineConfig, n int, step StepModel) []EngineRecord {
	t.Helper()
	r := rand.New(rand.NewPCG(1, 2))
	log := make([]EngineRecord, n)
	var at time.Duration
	for i := range log {
		log[i] = EngineRecord{Prompt: 20 + r.IntN(1000), Output: 1 + r.IntN(200), Arrival: at}
		at += time.Duration(r.ExpFloat64() * float64(100+i%200) * float64(ms))
	}
	c.Step = step
	played, err := PlayLog(c, log)
	if err != nil {
		t.Fatal(err)
	}
	return played
}

func TestPlayLog(t *testing.T) {
	c := EngineConfig{BlockTokens: 16, Blocks: 100, MaxBatchedTokens: 100, MaxSequences: 2, Step: linearStep{0.010, 0.001, 0}}
	got, err := PlayLog(c, []EngineRecord{
		{Prompt: 100, Output: 3},                    // 110 ms, then 2 steps of 10 ms
		{Prompt: 50, Output: 1, Arrival: 5 * ms},    // waits for the first step; alone it takes 60 ms, with one token more of the other
		{Prompt: 50, Output: 1, Arrival: 1000 * ms}, // finds the engine idle
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []EngineRecord{
		{100, 3, 0, 110 * ms, 180 * ms},
		{50, 1, 5 * ms, 170 * ms, 170 * ms},
		{50, 1, 1000 * ms, 1060 * ms, 1060 * ms},
	}
	if !slices.Equal(got, want) {
		t.Errorf("%v\nwant %v", got, want)
	}
	c.Blocks = 2
	if _, err := PlayLog(c, want); !errors.Is(err, ErrTooLong) || !strings.Contains(err.Error(), "request 0") {
		t.Errorf("a pool of 32 tokens: %v", err)
	}
	for _, r := range []EngineRecord{{Prompt: math.MaxInt, Output: 1}, {Prompt: 1, Output: math.MaxInt}} {
		if _, err := PlayLog(c, []EngineRecord{r}); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), "request 0") {
			t.Errorf("%+v: %v", r, err)
		}
	}
	if _, err := PlayLog(EngineConfig{}, want); !errors.Is(err, ErrConfig) {
		t.Errorf("no engine: %v", err)
	}
}

// What the log's engine was made of is found again, and no less from half of its requests when the rest is nonsense.
func TestFitLogFindsTheTruth(t *testing.T) {
	whole := servedLog(t, fitConfig, 150, truth)
	broken := slices.Clone(whole)
	for i := 75; i < len(broken); i++ {
		broken[i].FirstToken += time.Minute
		broken[i].Finished += time.Hour
	}
	for name, c := range map[string]struct {
		log    []EngineRecord
		counts func(int) bool
	}{"all": {whole, nil}, "first half": {broken, func(i int) bool { return i < 75 }}} {
		got, err := fitLog(fitConfig, c.log, linearFit, linear, c.counts)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range got {
			if off := v/truth[i] - 1; math.Abs(off) > 0.05 {
				t.Errorf("%s: %s is %.3g, want %.3g (%+.1f%%)", name, linearFit[i].Name, v, truth[i], 100*off)
			}
		}
	}
}

func TestLogMiss(t *testing.T) {
	log := []EngineRecord{
		{Prompt: 1, Output: 11, FirstToken: time.Second, Finished: 2 * time.Second},
		{Prompt: 1, Output: 1, FirstToken: time.Second, Finished: time.Second},
		{Prompt: 1, Output: 1}, // in no time: not to be compared
	}
	played := []EngineRecord{
		{Prompt: 1, Output: 11, FirstToken: time.Second, Finished: 2500 * ms}, // TPOT 1.5 times, E2E 1.25 times
		{Prompt: 1, Output: 1, FirstToken: 900 * ms, Finished: 900 * ms},
		{Prompt: 1, Output: 1, FirstToken: time.Second, Finished: time.Second},
	}
	if got, want := logMiss(log, played, nil), (.5*.5+.25*.25+.1*.1)/3; math.Abs(got-want) > 1e-12 {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := logMiss(log, played, func(i int) bool { return i == 1 }), .1*.1; math.Abs(got-want) > 1e-12 {
		t.Errorf("of the second: %v, want %v", got, want)
	}
	if got := logMiss(log, played, func(int) bool { return false }); got != 0 {
		t.Errorf("of none: %v", got)
	}
}

// Timings that jitter by a tenth give latencies that are right in the mean.
func TestFitLogOfJitter(t *testing.T) {
	log := servedLog(t, fitConfig, 150, truth)
	r := rand.New(rand.NewPCG(3, 4))
	jitter := func(d time.Duration) time.Duration { return time.Duration(float64(d) * (0.9 + 0.2*r.Float64())) }
	for i := range log {
		ttft, rest := jitter(log[i].TTFT()), jitter(log[i].Finished-log[i].FirstToken)
		log[i].FirstToken = log[i].Arrival + ttft
		log[i].Finished = log[i].FirstToken + rest
	}
	values, err := fitLog(fitConfig, log, linearFit, linear, nil)
	if err != nil {
		t.Fatal(err)
	}
	c := fitConfig
	c.Step = linear(values)
	played, err := PlayLog(c, log)
	if err != nil {
		t.Fatal(err)
	}
	_, tpot, e2e := LogLatency(log)
	_, modelTPOT, modelE2E := LogLatency(played)
	for name, m := range map[string][2]time.Duration{"TPOT": {tpot.Mean, modelTPOT.Mean}, "E2E": {e2e.Mean, modelE2E.Mean}} {
		if off := float64(m[1])/float64(m[0]) - 1; math.Abs(off) > 0.02 {
			t.Errorf("%s: %v measured, %v in the model (%+.1f%%)", name, m[0], m[1], 100*off)
		}
	}
}

func TestFitLogRefuses(t *testing.T) {
	log := servedLog(t, fitConfig, 5, truth)
	for name, c := range map[string]struct {
		log        []EngineRecord
		parameters []parameter
		config     EngineConfig
		want       error
	}{
		"no log":         {nil, linearFit, fitConfig, ErrFit},
		"nothing to fit": {log, nil, fitConfig, ErrFit},
		"starts outside": {log, []parameter{{"x", 0, 1, 2}}, fitConfig, ErrFit},
		"starts below":   {log, []parameter{{"x", 0, 1, -1}}, fitConfig, ErrFit},
		"no range":       {log, []parameter{{"x", 1, 1, 1}}, fitConfig, ErrFit},
		"no number":      {log, []parameter{{"x", 0, 1, math.NaN()}}, fitConfig, ErrFit},
		"no engine":      {log, linearFit, EngineConfig{}, ErrConfig},
	} {
		if _, err := fitLog(c.config, c.log, c.parameters, linear, nil); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
}
