package replica

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"
)

const engineText = `{"gpu":{"flops":165.2e12,"bandwidth":1008e9},"gpus":1,
"model":{"dense":7.5e9,"weight_bytes":2,"attention":524288,"kv_bytes":131072},
"block_tokens":16,"kv_tokens":41408,"max_batched_tokens":2048,"max_sequences":256,
"base":"1ms","per_request":"5us","mfu":0.8,"weight_read":0.85,"kv_read":0.9}`

func TestReadEngine(t *testing.T) {
	got, err := ReadEngine(strings.NewReader(engineText))
	if err != nil {
		t.Fatal(err)
	}
	want := EngineConfig{BlockTokens: 16, Blocks: 2588, MaxBatchedTokens: 2048, MaxSequences: 256, Step: &Roofline{
		GPU:   GPU{FLOPS: 165.2e12, Bandwidth: 1008e9},
		Model: Model{Dense: 7.5e9, WeightBytes: 2, Attention: 524288, KVBytes: 131072},
		GPUs:  1, Base: time.Millisecond, PerRequest: 5 * time.Microsecond, MFU: .8, WeightRead: .85, KVRead: .9,
	}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got.Step, want.Step)
	}
	// One GPU does without a link.
	if step := got.Step.StepTime(Batch{Requests: 1, Decoding: 1, Tokens: 1}); step <= time.Millisecond || step > time.Second {
		t.Errorf("a step of one token takes %v", step)
	}
}

// What is named is the preset's; what is absent is as the comment says.
func TestReadEngineByName(t *testing.T) {
	got, err := ReadEngine(strings.NewReader(`{"gpu":"h100","model":"Nemotron-3-Super","gpus":4,"kv_tokens":1000000}`))
	if err != nil {
		t.Fatal(err)
	}
	preset, err := Preset("H100", "nemotron-3-super", 4)
	if err != nil {
		t.Fatal(err)
	}
	step, want := got.Step.(*Roofline), preset.Step.(*Roofline)
	want.GPU.Memory, want.Model.Weights = 0, 0 // for the size of the pool, which is given
	if step.GPU != want.GPU || step.Model != want.Model || step.GPUs != 4 {
		t.Errorf("%+v\nwant %+v", step, want)
	}
	if got.BlockTokens != 16 || got.Blocks != 62500 || got.MaxBatchedTokens != 8192 || got.MaxSequences != 1024 || got.AlignedChunks {
		t.Errorf("%+v", got)
	}
	if step.Base != 4*time.Millisecond || step.PerRequest != 5*time.Microsecond || step.MFU != .515 || step.WeightRead != .8 || step.KVRead != .95 {
		t.Errorf("%+v", step)
	}
}

// What is written is read back, with every field in it.
func TestWriteEngine(t *testing.T) {
	want, err := Preset("GB200", "nemotron-3-super", 2)
	if err != nil {
		t.Fatal(err)
	}
	step := want.Step.(*Roofline)
	step.GPU.Memory, step.Model.Weights = 0, 0
	var text strings.Builder
	if err := WriteEngine(&text, want, "a remark"); err != nil {
		t.Fatal(err)
	}
	got, err := ReadEngine(strings.NewReader(text.String()))
	if err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("%+v, %v\nwant %+v\n%s", got.Step, err, want.Step, text.String())
	}
	if !strings.Contains(text.String(), `"about": "a remark"`) {
		t.Error(text.String())
	}
	if err := WriteEngine(&text, EngineConfig{Step: linearStep{}}, ""); !errors.Is(err, ErrEngineFile) {
		t.Errorf("another kind of step: %v", err)
	}
}

func TestReadEngineRefuses(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{`"mfu":0.8`, `"mfu":1.2`, "mfu is 1.2; it must be at most 1"},
		{`"mfu":0.8`, `"mfu":0`, "mfu is 0 or absent"},
		{`"kv_tokens":41408,`, ``, "kv_tokens is 0 or absent"},
		{`"kv_tokens":41408,`, `"kv_tokens":15,`, "Blocks is 0"},
		{`"flops":165.2e12`, `"flops":-1`, "gpu.flops is -1"},
		{`"dense":7.5e9,`, ``, "model.dense is 0"},
		{`"gpus":1`, `"gpus":2`, "gpu.link, model.all_reduces and model.hidden"},
		{`"dense":7.5e9`, `"dense":1,"experts":2,"active_experts":3`, "at most experts"},
		{`"base":"1ms"`, `"base":"4"`, `base is "4"; it must be a duration`},
		{`"per_request":"5us"`, `"per_request":"-4ms"`, `per_request is`},
		{`"mfu"`, `"mfo"`, `"mfo"`},
		{`"flops"`, `"flop"`, `"flop"`},
		{`"dense"`, `"denser"`, `"denser"`},
		{`"max_sequences":256`, `"max_sequences":0`, "MaxSequences is 0"},
		{`{"flops":165.2e12,"bandwidth":1008e9}`, `"A100"`, `gpu "A100"; known are H100`},
		{`{"dense":7.5e9,"weight_bytes":2,"attention":524288,"kv_bytes":131072}`, `"gpt"`, `model "gpt"; known are`},
		{`0.9}`, `0.9}{}`, "more than one"},
		{`0.9}`, `0.9`, "unexpected"},
	} {
		if !strings.Contains(engineText, c.old) {
			t.Fatalf("%s is not in the file", c.old)
		}
		_, err := ReadEngine(strings.NewReader(strings.Replace(engineText, c.old, c.new, 1)))
		if !errors.Is(err, ErrEngineFile) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v; want an error with %q", c.new, err, c.want)
		}
	}
}

func FuzzReadEngine(f *testing.F) {
	f.Add(engineText)
	f.Add(`{"gpu":"H100","model":"qwen3-32b","gpus":2,"kv_tokens":340000}`)
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ReadEngine(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, ErrEngineFile) {
				t.Fatal(err)
			}
			return
		}
		var again strings.Builder
		if err := WriteEngine(&again, c, ""); err != nil {
			t.Fatal(err)
		}
		if second, err := ReadEngine(strings.NewReader(again.String())); err != nil || !reflect.DeepEqual(c, second) {
			t.Fatalf("%+v, %v; was %+v", second, err, c)
		}
		if err := c.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}
