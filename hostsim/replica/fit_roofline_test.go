package replica

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"
)

// twoGPUs is a server and what its log is made of: two GPUs over a slow link.
func twoGPUs(t *testing.T) (EngineConfig, *Roofline) {
	t.Helper()
	c, err := Preset("H100", "qwen3-32b", 2)
	if err != nil {
		t.Fatal(err)
	}
	c.BlockTokens, c.Blocks, c.MaxBatchedTokens, c.MaxSequences = 16, 4000, 2048, 64
	m := *c.Step.(*Roofline)
	m.Base, m.MFU, m.WeightRead, m.KVRead, m.GPU.Link = 6*time.Millisecond, .4, .7, .6, 20e9
	return c, &m
}

// From a preset's numbers, latencies come within 2% of a server's that has others.
func TestFitRoofline(t *testing.T) {
	c, made := twoGPUs(t)
	log := servedLog(t, c, 100, made)
	fitted, err := FitRoofline(c, log, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	played, err := PlayLog(fitted, log)
	if err != nil {
		t.Fatal(err)
	}
	before, err := PlayLog(c, log)
	if err != nil {
		t.Fatal(err)
	}
	if miss, was := logMiss(log, played, nil), logMiss(log, before, nil); miss > square(.02) || was < square(.2) {
		t.Errorf("the fit misses by %.3f, the preset by %.3f; want the one below 0.02, the other above 0.2", math.Sqrt(miss), math.Sqrt(was))
	}
	if start := c.Step.(*Roofline); start.Base != 4*time.Millisecond || start.GPU.Link != 450e9 {
		t.Errorf("the caller's model was changed: %+v", start)
	}
}

// What is held stays, and what is left is found.
func TestFitRooflineHolds(t *testing.T) {
	c, made := twoGPUs(t)
	log := servedLog(t, c, 60, made)
	start := *made
	start.GPU.Link = 100e9
	c.Step = &start
	fitted, err := FitRoofline(c, log, []string{"base", "mfu", "weight_read", "kv_read"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := *fitted.Step.(*Roofline)
	if off := got.GPU.Link/20e9 - 1; math.Abs(off) > .02 {
		t.Errorf("link is %g, want 2e10", got.GPU.Link)
	}
	if got.GPU.Link = 20e9; got != *made {
		t.Errorf("%+v\nwant %+v", got, *made)
	}
	if same, err := FitRoofline(c, log, rooflineFree, nil); err != nil || same.Step != c.Step {
		t.Errorf("with everything held: %+v, %v", same, err)
	}
}

// One GPU has no link to look for.
func TestFitRooflineOfOneGPU(t *testing.T) {
	c, made := twoGPUs(t)
	one := *made
	one.GPUs = 1
	log := servedLog(t, c, 30, &one)
	c.Step = &one
	fitted, err := FitRoofline(c, log, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if link := fitted.Step.(*Roofline).GPU.Link; link != 20e9 {
		t.Errorf("link became %g", link)
	}
}

func TestFitRooflineRefuses(t *testing.T) {
	c, made := twoGPUs(t)
	log := servedLog(t, c, 3, made)
	if _, err := FitRoofline(c, log, []string{"mfu", "e_w"}, nil); !errors.Is(err, ErrFit) || !strings.Contains(err.Error(), strings.Join(rooflineFree, ", ")) {
		t.Errorf("an unknown name: %v", err)
	}
	if _, err := FitRoofline(c, nil, nil, nil); !errors.Is(err, ErrFit) {
		t.Errorf("no log: %v", err)
	}
	c.Step = linearStep{}
	if _, err := FitRoofline(c, log, nil, nil); !errors.Is(err, ErrFit) {
		t.Errorf("another kind of step: %v", err)
	}
}
