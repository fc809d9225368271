package replica

import (
	"errors"
	"math"
	"strings"
	"testing"
)

func TestPresets(t *testing.T) {
	for _, c := range []struct {
		gpu, model string
		count      int
		pool       int // tokens, to 1%
		budget     int
	}{
		{"H100", "qwen3-32b", 2, 340_000, 8192},
		{"h200", "Qwen3-32B", 1, 270_000, 8192},
		{"GB200", "qwen3-32b", 1, 435_000, 16384},
		{"GB200", "nemotron-3-super", 2, 10_700_000, 8480},
	} {
		e, err := Preset(c.gpu, c.model, c.count)
		if err != nil {
			t.Fatal(err)
		}
		if got := e.Blocks * e.BlockTokens; math.Abs(float64(got-c.pool)) > .01*float64(c.pool) || e.MaxBatchedTokens != c.budget {
			t.Errorf("%d %s, %s: a pool of %d tokens, budget %d; want about %d, %d", c.count, c.gpu, c.model, got, e.MaxBatchedTokens, c.pool, c.budget)
		}
		if _, err := NewEngine(e); err != nil {
			t.Error(err)
		}
	}
	for _, c := range []struct {
		gpu, model string
		count      int
		say        string
	}{
		{"A100", "qwen3-32b", 1, "H100, H200, GB200"},
		{"H100", "gpt", 1, "qwen3-32b, nemotron-3-super"},
		{"H100", "qwen3-32b", 0, "1 or more"},
		{"H100", "nemotron-3-super", 2, "more GPUs"},
	} {
		_, err := Preset(c.gpu, c.model, c.count)
		if !errors.Is(err, ErrPreset) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// The models' totals follow from their layers.
func TestPresetModels(t *testing.T) {
	near := func(what string, got, want, tolerance float64) {
		t.Helper()
		if math.Abs(got-want) > tolerance*want {
			t.Errorf("%s is %g, want %g", what, got, want)
		}
	}
	qwen, nemotron := models[0].model, models[1].model
	layer := 5120.*64*128*2 + 5120*8*128*2 + 3*5120*25600
	near("Qwen's parameters a token", qwen.Dense, 64*layer+5120*151936, .01)
	near("Qwen's weights", qwen.Weights, 2*(64*layer+2*5120*151936), .01)
	near("Nemotron's parameters", nemotron.Dense+512*nemotron.Expert, 120.6e9, .01)
	near("Nemotron's active parameters", nemotron.Dense+22*nemotron.Expert, 12.2e9, .01)
	near("Nemotron's expert", nemotron.Expert, 220.2e6, .001)
	near("Nemotron's state", nemotron.StateBytes, 336e6, .01)
	if qwen.KVBytes != 262144 || nemotron.KVBytes != 8192 || nemotron.Attention != 131072 {
		t.Errorf("%+v %+v", qwen, nemotron)
	}
	// A layer's KV of a block is about a layer's state: 40 layers of half of what a step moves.
	near("a block's KV in one layer", 4160*nemotron.KVBytes/8, nemotron.StateBytes/2/40, .02)
}
