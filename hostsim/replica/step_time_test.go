package replica

import (
	"math"
	"testing"
	"time"
)

func TestRoofline(t *testing.T) {
	dense := Roofline{
		GPU:   GPU{FLOPS: 100, Bandwidth: 1000, Link: 10},
		Model: Model{Dense: 50, WeightBytes: 2, Attention: 3, KVBytes: 7, StateBytes: 11, AllReduces: 2, Hidden: 5},
		GPUs:  2, Base: time.Second, PerRequest: time.Millisecond, MFU: .5, WeightRead: .5, KVRead: .25,
	}
	experts := dense
	experts.Model.Expert, experts.Model.Experts, experts.Model.ActiveExperts = 10, 4, 1
	alone := dense
	alone.GPUs, alone.GPU.Link = 1, 0
	for _, c := range []struct {
		name string
		m    Roofline
		b    Batch
		want float64 // seconds
	}{
		{"nothing", dense, Batch{}, 0},
		// 2*50/(2*100*.5) = 1 computing, 100/(2*1000*.5) = .1 reading; 3*.5/100; 20*2*1/2*... = 1*2*5*2*2*(1/2)/10 = 2.
		{"one token", dense, Batch{Requests: 1, Prefill: 1, Tokens: 1, Attention: .5}, 1 + .001 + 1 + .015 + 2},
		// 4 tokens compute 4, attend to (7*10+11*4)/(2*1000*.25) and talk 8.
		{"decoding", dense, Batch{Requests: 4, Decoding: 4, Tokens: 4, Context: 10}, 1 + .004 + 4 + .228 + 8},
		{"one GPU", alone, Batch{Requests: 1, Decoding: 1, Tokens: 1}, 1 + .001 + 2 + .044},
		// 60 active parameters.
		{"experts", experts, Batch{Requests: 1, Prefill: 1, Tokens: 1}, 1 + .001 + 1.2 + 2},
	} {
		if got := c.m.StepTime(c.b).Seconds(); math.Abs(got-c.want) > 1e-6 {
			t.Errorf("%s: %v s, want %v", c.name, got, c.want)
		}
	}
	// With much to compute with, reading is what counts: 50 + 4*10*(1-(3/4)^2) = 67.5 parameters.
	experts.GPU.FLOPS = 1e9
	if got, want := experts.StepTime(Batch{Requests: 1, Prefill: 2, Tokens: 2}).Seconds(), 1+.001+.135+4; math.Abs(got-want) > 1e-5 {
		t.Errorf("reading experts: %v s, want %v", got, want)
	}
}
