package replica

import (
	"math"
	"time"
)

// Roofline is a StepModel: a step computes or reads the weights, whichever takes longer, then attends, reads the KV cache
// and talks to the other GPUs. With T tokens in the batch and p GPUs
//
//	step = Base + PerRequest*requests
//	     + max(2*active*T / (p*FLOPS*MFU), weights(T)*WeightBytes / (p*Bandwidth*WeightRead))
//	     + Attention*sum n*(context + n/2) / (p*FLOPS*MFU)          over prefill chunks of n tokens
//	     + (KVBytes*contexts + StateBytes*sequences) / (p*Bandwidth*KVRead)          of decoding requests
//	     + T*AllReduces*Hidden*2 bytes*2*(p-1)/p / Link
//	active     = Dense + ActiveExperts*Expert
//	weights(T) = Dense + Experts*(1 - (1 - ActiveExperts/Experts)^T)*Expert
//
// where weights(T) is what T tokens touch of a mixture of experts if each picks its experts by chance. Prefill's reads of
// the KV cache are not counted; its FLOPs are.
type Roofline struct {
	GPU   GPU
	Model Model
	// GPUs is the number of GPUs that share each layer (tensor parallelism), 1 or more.
	GPUs int
	// Base is a step's time for nothing, PerRequest what each request adds: scheduling, sampling, launches.
	Base, PerRequest time.Duration
	// MFU is the share of FLOPS that is reached; WeightRead and KVRead are the shares of Bandwidth, reading weights and the KV
	// cache. Above 0, at most 1.
	MFU, WeightRead, KVRead float64
}

// GPU is what one GPU can do at best.
type GPU struct {
	// FLOPS is dense bf16 operations a second, Bandwidth is bytes a second from its memory, Link bytes a second in one
	// direction to other GPUs, which one GPU alone does without.
	FLOPS, Bandwidth, Link float64
	// Memory is its size in GiB.
	Memory float64
}

// Model is what a language model costs a token. Counts are of parameters that a token's computation uses: the table of
// input embeddings is looked up and not among them.
type Model struct {
	// Dense is the number of parameters every token uses; Expert is one expert's, over all layers. A dense model has no
	// Experts.
	Dense, Expert          float64
	Experts, ActiveExperts int
	// WeightBytes is the size of a parameter in bytes, Weights of all of them, with the embeddings.
	WeightBytes, Weights float64
	// Attention is the FLOPs of one token attending to one other: 4 * layers with attention * heads * head size.
	Attention float64
	// KVBytes is a token's size in the KV cache.
	KVBytes float64
	// StateBytes is what a decoding sequence reads and writes of recurrent state in a step; zero without such layers.
	StateBytes float64
	// AllReduces is the number of sums over all GPUs in a step, of Hidden numbers of two bytes a token.
	AllReduces, Hidden int
}

// StepTime returns the time of a step that computes b. An empty batch takes none.
func (m *Roofline) StepTime(b Batch) time.Duration {
	if b.Requests == 0 {
		return 0
	}
	p, tokens := float64(m.GPUs), float64(b.Tokens)
	flops := p * m.GPU.FLOPS * m.MFU
	compute := 2 * (m.Model.Dense + float64(m.Model.ActiveExperts)*m.Model.Expert) * tokens / flops
	read := m.Model.touched(tokens) * m.Model.WeightBytes / (p * m.GPU.Bandwidth * m.WeightRead)
	attend := m.Model.Attention * b.Attention / flops
	cache := (m.Model.KVBytes*float64(b.Context) + m.Model.StateBytes*float64(b.Decoding)) / (p * m.GPU.Bandwidth * m.KVRead)
	var talk float64
	if m.GPUs > 1 { // one GPU need not have a link to divide by
		talk = tokens * float64(m.Model.AllReduces*m.Model.Hidden) * 2 * 2 * (p - 1) / p / m.GPU.Link
	}
	return m.Base + time.Duration(b.Requests)*m.PerRequest +
		time.Duration((math.Max(compute, read)+attend+cache+talk)*float64(time.Second))
}

// touched is the number of parameters that tokens tokens use together.
func (m *Model) touched(tokens float64) float64 {
	if m.Experts == 0 {
		return m.Dense
	}
	e := float64(m.Experts)
	return m.Dense + e*(1-math.Pow(1-float64(m.ActiveExperts)/e, tokens))*m.Expert
}
