package replica

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"time"
)

// ErrEngineFile is wrapped by the errors of ReadEngine.
var ErrEngineFile = errors.New("replica: engine file")

// engineFile is a server as a JSON object.
type engineFile struct {
	About string    `json:"about,omitempty"`
	GPU   gpuFile   `json:"gpu"`
	Model modelFile `json:"model"`
	GPUs  int       `json:"gpus"`

	BlockTokens      int  `json:"block_tokens"`
	KVTokens         int  `json:"kv_tokens"`
	MaxBatchedTokens int  `json:"max_batched_tokens"`
	MaxSequences     int  `json:"max_sequences"`
	AlignedChunks    bool `json:"aligned_chunks,omitempty"`

	Base       string  `json:"base"`
	PerRequest string  `json:"per_request"`
	MFU        float64 `json:"mfu"`
	WeightRead float64 `json:"weight_read"`
	KVRead     float64 `json:"kv_read"`
}

type gpuFile struct {
	FLOPS     float64 `json:"flops"`
	Bandwidth float64 `json:"bandwidth"`
	Link      float64 `json:"link,omitempty"`
}

type modelFile struct {
	Dense         float64 `json:"dense"`
	Expert        float64 `json:"expert,omitempty"`
	Experts       int     `json:"experts,omitempty"`
	ActiveExperts int     `json:"active_experts,omitempty"`
	WeightBytes   float64 `json:"weight_bytes"`
	Attention     float64 `json:"attention"`
	KVBytes       float64 `json:"kv_bytes"`
	StateBytes    float64 `json:"state_bytes,omitempty"`
	AllReduces    int     `json:"all_reduces,omitempty"`
	Hidden        int     `json:"hidden,omitempty"`
}

// ReadEngine reads one server, its Step a *Roofline, from a JSON object:
//
//	{"gpu":{"flops":165.2e12,"bandwidth":1008e9},"gpus":1,
//	 "model":{"dense":7.5e9,"weight_bytes":2,"attention":524288,"kv_bytes":131072},
//	 "block_tokens":16,"kv_tokens":41408,"max_batched_tokens":2048,"max_sequences":256,
//	 "base":"1ms","per_request":"5us","mfu":0.8,"weight_read":0.85,"kv_read":0.9}
//
// The fields are those of EngineConfig, Roofline, GPU and Model. gpu or model may be a name that Preset knows. kv_tokens is
// the pool's size in tokens, which vLLM logs when it starts. gpu, model and kv_tokens are required; without the rest, it is
// one GPU, vLLM's defaults (blocks of 16; 8,192 tokens and 1,024 sequences a step) and the shares of a dense model on an
// H100. More than one GPU wants link, all_reduces and hidden. about is a remark. Errors: ErrEngineFile.
func ReadEngine(r io.Reader) (EngineConfig, error) {
	f := engineFile{GPUs: 1, BlockTokens: 16, MaxBatchedTokens: 8192, MaxSequences: 1024,
		Base: "4ms", PerRequest: "5us", MFU: .515, WeightRead: .80, KVRead: .95}
	d := json.NewDecoder(r)
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return EngineConfig{}, fmt.Errorf("%w: %w", ErrEngineFile, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return EngineConfig{}, fmt.Errorf("%w: more than one JSON value", ErrEngineFile)
	}
	c, err := f.config()
	if err != nil {
		return EngineConfig{}, fmt.Errorf("%w: %w", ErrEngineFile, err)
	}
	return c, nil
}

// UnmarshalJSON takes the numbers or the name of a preset.
func (g *gpuFile) UnmarshalJSON(data []byte) error {
	type numbers gpuFile
	i, err := nameOr(data, "gpu", GPUs(), (*numbers)(g))
	if i >= 0 {
		p := gpus[i].gpu
		*g = gpuFile{p.FLOPS, p.Bandwidth, p.Link}
	}
	return err
}

// UnmarshalJSON takes the numbers or the name of a preset.
func (m *modelFile) UnmarshalJSON(data []byte) error {
	type numbers modelFile
	i, err := nameOr(data, "model", Models(), (*numbers)(m))
	if i >= 0 {
		*m = modelFileOf(models[i].model)
	}
	return err
}

// nameOr returns the place of a JSON string among names, or decodes anything else into v and returns -1.
func nameOr(data []byte, what string, names []string, v any) (int, error) {
	var name string
	if json.Unmarshal(data, &name) != nil {
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		return -1, d.Decode(v)
	}
	for i, n := range names {
		if strings.EqualFold(n, name) {
			return i, nil
		}
	}
	return -1, fmt.Errorf("%s %q; known are %s, or give an object with its numbers", what, name, strings.Join(names, ", "))
}

func modelFileOf(m Model) modelFile {
	return modelFile{m.Dense, m.Expert, m.Experts, m.ActiveExperts, m.WeightBytes, m.Attention, m.KVBytes, m.StateBytes, m.AllReduces, m.Hidden}
}

func (f *engineFile) config() (EngineConfig, error) {
	m := f.Model
	step := &Roofline{
		GPU: GPU{FLOPS: f.GPU.FLOPS, Bandwidth: f.GPU.Bandwidth, Link: f.GPU.Link},
		Model: Model{Dense: m.Dense, Expert: m.Expert, Experts: m.Experts, ActiveExperts: m.ActiveExperts, WeightBytes: m.WeightBytes,
			Attention: m.Attention, KVBytes: m.KVBytes, StateBytes: m.StateBytes, AllReduces: m.AllReduces, Hidden: m.Hidden},
		GPUs: f.GPUs, MFU: f.MFU, WeightRead: f.WeightRead, KVRead: f.KVRead,
	}
	for _, n := range []struct {
		name  string
		value float64
		most  float64
	}{
		{"gpu.flops", f.GPU.FLOPS, math.Inf(1)}, {"gpu.bandwidth", f.GPU.Bandwidth, math.Inf(1)}, {"model.dense", m.Dense, math.Inf(1)},
		{"model.weight_bytes", m.WeightBytes, math.Inf(1)}, {"model.attention", m.Attention, math.Inf(1)}, {"model.kv_bytes", m.KVBytes, math.Inf(1)},
		{"gpus", float64(f.GPUs), math.Inf(1)}, {"kv_tokens", float64(f.KVTokens), math.Inf(1)}, {"block_tokens", float64(f.BlockTokens), math.Inf(1)},
		{"mfu", f.MFU, 1}, {"weight_read", f.WeightRead, 1}, {"kv_read", f.KVRead, 1},
	} {
		switch {
		case n.value <= 0:
			return EngineConfig{}, fmt.Errorf("%s is %v or absent; it must be more than 0", n.name, n.value)
		case n.value > n.most:
			return EngineConfig{}, fmt.Errorf("%s is %v; it must be at most %v", n.name, n.value, n.most)
		}
	}
	if f.GPUs > 1 && (f.GPU.Link <= 0 || m.AllReduces < 1 || m.Hidden < 1) {
		return EngineConfig{}, fmt.Errorf("%d gpus want gpu.link, model.all_reduces and model.hidden, each more than 0", f.GPUs)
	}
	if m.Experts < 0 || m.ActiveExperts < 0 || m.ActiveExperts > m.Experts || m.Expert < 0 || m.StateBytes < 0 {
		return EngineConfig{}, errors.New("model: expert, experts, active_experts and state_bytes must be 0 or more, active_experts at most experts")
	}
	for _, d := range []struct {
		name, text string
		into       *time.Duration
	}{{"base", f.Base, &step.Base}, {"per_request", f.PerRequest, &step.PerRequest}} {
		v, err := time.ParseDuration(d.text)
		if err != nil || v < 0 {
			return EngineConfig{}, fmt.Errorf("%s is %q; it must be a duration such as \"4ms\", 0 or more", d.name, d.text)
		}
		*d.into = v
	}
	c := EngineConfig{BlockTokens: f.BlockTokens, Blocks: f.KVTokens / f.BlockTokens, MaxBatchedTokens: f.MaxBatchedTokens,
		MaxSequences: f.MaxSequences, AlignedChunks: f.AlignedChunks, Step: step}
	return c, c.Validate()
}

// WriteEngine writes c, whose Step is a *Roofline, as ReadEngine reads it, with a remark. Errors: ErrEngineFile, w's.
func WriteEngine(w io.Writer, c EngineConfig, about string) error {
	step, ok := c.Step.(*Roofline)
	if !ok {
		return fmt.Errorf("%w: a step of type %T; wants a *Roofline", ErrEngineFile, c.Step)
	}
	f := engineFile{
		About: about, GPU: gpuFile{step.GPU.FLOPS, step.GPU.Bandwidth, step.GPU.Link}, Model: modelFileOf(step.Model), GPUs: step.GPUs,
		BlockTokens: c.BlockTokens, KVTokens: c.Blocks * c.BlockTokens, MaxBatchedTokens: c.MaxBatchedTokens, MaxSequences: c.MaxSequences,
		AlignedChunks: c.AlignedChunks, Base: step.Base.String(), PerRequest: step.PerRequest.String(),
		MFU: step.MFU, WeightRead: step.WeightRead, KVRead: step.KVRead,
	}
	out := json.NewEncoder(w)
	out.SetIndent("", "  ")
	return out.Encode(f)
}
