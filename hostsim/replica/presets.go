package replica

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrPreset is wrapped by Preset's error about an unknown GPU or model, or a model that does not fit.
var ErrPreset = errors.New("replica: no such preset")

// gpus are NVIDIA's SXM modules.
//
//   - FLOPS: pytorch/torchtitan 0258167, torchtitan/tools/utils.py, after NVIDIA's data sheets; half of the 1,979e12
//     with sparsity that pytorch/pytorch 00604d0, torch/_inductor/analysis/device_info.py, has for the H100.
//   - Bandwidth: the H100's from the same file. The H200's and the GB200's are not cited: no data sheet was at hand.
//   - Link is half of what is given for both directions. H100 and H200: 900 GB/s, mlcommons/inference_results_v4.1 a2f5d66,
//     closed/NVIDIA/systems/DGX-H100_H100-SXM-80GBx8_TRT.json and H200-SXM-141GBx8_TRT.json. GB200: 14.4 TB/s
//     for eight B200, mlcommons/inference_results_v6.0, closed/Nebius/systems/nebius_b200_n1.json; NVIDIA checks both for 18
//     links, twice as fast as the H100's (docs.nvidia.com/health-validation/reference/checks/nvlink).
//   - Memory: the same files; the GB200's of mlcommons/inference_results_v6.1, closed/Crusoe/systems. Its GB are what the
//     driver reports as GiB.
var gpus = []struct {
	name string
	gpu  GPU
}{
	{"H100", GPU{FLOPS: 989.5e12, Bandwidth: 3.35e12, Link: 450e9, Memory: 80}},
	{"H200", GPU{FLOPS: 989.5e12, Bandwidth: 4.8e12, Link: 450e9, Memory: 141}},
	{"GB200", GPU{FLOPS: 2.25e15, Bandwidth: 8e12, Link: 900e9, Memory: 186}},
}

// modelPreset is a model as a server runs it.
type modelPreset struct {
	name  string
	model Model
	// kvShare is the part of the cache's memory that holds KV; the rest is recurrent state.
	kvShare float64
	// config has the server's settings; zero stands for vLLM's default on the GPU.
	config EngineConfig
	step   Roofline
}

var models = []modelPreset{
	{
		// NVIDIA/NeMo 00558c4, nemo/collections/llm/gpt/model/qwen3.py (Apache-2.0), Qwen3Config32B: 64 layers, hidden 5,120, 64
		// heads and 8 KV heads of 128, MLP of 25,600, vocabulary 151,936. 32.0e9 parameters without the input embeddings.
		name: "qwen3-32b",
		model: Model{
			Dense: 32.0e9, WeightBytes: 2, Weights: 65.5e9, Attention: 4 * 64 * 64 * 128, KVBytes: 2 * 64 * 8 * 128 * 2,
			AllReduces: 2 * 64, Hidden: 5120,
		},
		kvShare: 1,
		// 64 tokens are the block of the WEKA traces. vLLM's 16 find the same, in four times the blocks.
		config: EngineConfig{BlockTokens: 64},
		step:   Roofline{Base: 4 * time.Millisecond, PerRequest: 5 * time.Microsecond, MFU: .515, WeightRead: .80, KVRead: .95},
	},
	{
		// NVIDIA-NeMo/Megatron-Bridge 160ccccb, src/megatron/bridge/models/nemotronh/nemotron_h_provider.py (Apache-2.0): 88
		// layers, 40 of them Mamba (128 heads of 64, state 128), 40 of experts (512, 22 a token, latent 1,024, inner 2,688),
		// 8 of attention (32 heads and 2 KV heads of 128); hidden 4,096. An expert is 2*1,024*2,688 parameters in 40 layers.
		// A layer here is one block and has one all-reduce.
		name: "nemotron-3-super",
		model: Model{
			Dense: 7.33e9, Expert: 40 * 2 * 1024 * 2688, Experts: 512, ActiveExperts: 22, WeightBytes: 2, Weights: 241.2e9,
			Attention: 4 * 8 * 32 * 128, KVBytes: 2 * 8 * 2 * 128 * 2,
			StateBytes: 2 * 40 * 128 * 64 * 128 * 4, // read and written, float32
			AllReduces: 88, Hidden: 4096,
		},
		// The published campaign's engine had a pool of 10.7 M tokens: TP2, taken for GB200s.
		kvShare: .742,
		// The campaign's settings: NVIDIA-NeMo/RL, examples/configs/recipes/llm/grpo-nemotron3-super-120BA12B-*.yaml (Apache-2.0).
		// 4,160 tokens is where a layer's KV is as large as a layer's state.
		config: EngineConfig{BlockTokens: 4160, MaxBatchedTokens: 8480, MaxSequences: 256, AlignedChunks: true},
		step:   Roofline{Base: 4 * time.Millisecond, PerRequest: 5 * time.Microsecond, MFU: .40, WeightRead: .75, KVRead: .80},
	},
}

// memoryShare is the part of a GPU's memory for weights and cache: vLLM's gpu_memory_utilization of .92 less room for
// activations. It makes Qwen3-32B's pool on two H100 340k tokens, as such servers report.
const memoryShare = .90

// GPUs returns the names that Preset knows.
func GPUs() []string {
	var names []string
	for _, g := range gpus {
		names = append(names, g.name)
	}
	return names
}

// Models returns the names that Preset knows.
func Models() []string {
	var names []string
	for _, m := range models {
		names = append(names, m.name)
	}
	return names
}

// Preset returns one server of model on count GPUs, 1 or more: vLLM's defaults, a pool that fills the memory, and a
// *Roofline as Step. Upper and lower case are the same. Errors: ErrPreset.
func Preset(gpu, model string, count int) (EngineConfig, error) {
	g := slices.IndexFunc(GPUs(), func(n string) bool { return strings.EqualFold(n, gpu) })
	if g < 0 {
		return EngineConfig{}, fmt.Errorf("%w: GPU %q; %s are known", ErrPreset, gpu, strings.Join(GPUs(), ", "))
	}
	m := slices.IndexFunc(Models(), func(n string) bool { return strings.EqualFold(n, model) })
	if m < 0 {
		return EngineConfig{}, fmt.Errorf("%w: model %q; %s are known", ErrPreset, model, strings.Join(Models(), ", "))
	}
	if count < 1 {
		return EngineConfig{}, fmt.Errorf("%w: %d GPUs; 1 or more are allowed", ErrPreset, count)
	}
	p := models[m]
	c, step := p.config, p.step
	step.GPU, step.Model, step.GPUs = gpus[g].gpu, p.model, count
	c.Step = &step
	left := float64(count)*step.GPU.Memory*(1<<30)*memoryShare - p.model.Weights
	c.Blocks = int(left * p.kvShare / (p.model.KVBytes * float64(c.BlockTokens)))
	if c.Blocks < 1 {
		return EngineConfig{}, fmt.Errorf("%w: %s has %.0f GB of weights and does not fit into %d %s; use more GPUs or larger ones",
			ErrPreset, p.name, p.model.Weights/1e9, count, gpus[g].name)
	}
	// vLLM 0.32, vllm/engine/arg_utils.py: an API server's defaults by the GPU's memory.
	if c.MaxBatchedTokens == 0 {
		c.MaxBatchedTokens = 8192
		if step.GPU.Memory >= 160 {
			c.MaxBatchedTokens = 16384
		}
	}
	if c.MaxSequences == 0 {
		c.MaxSequences = 1024
	}
	return c, nil
}
