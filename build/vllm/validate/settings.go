package main

import "strconv"

// settings are what an engine is started with and a model is made of.
type settings struct {
	// Name is the recording's.
	Name string `json:"engine"`
	// Version is vLLM's.
	Version string `json:"vllm"`
	// BlockTokens is the size of a cache block, a multiple of 32 on CPUs.
	BlockTokens int `json:"block_tokens"`
	// Blocks is the size of the pool as the engine counts: with its null block, which no request ever gets.
	Blocks int `json:"blocks"`
	// MaxBatchedTokens is the budget of a step, MaxSequences how many run at once.
	MaxBatchedTokens int `json:"max_batched_tokens"`
	MaxSequences     int `json:"max_sequences"`
}

// engines are what is validated. Pools are small, so that contents are evicted all the time. The second has what the first
// hides: a budget that is no multiple of the block, and fewer places than requests. The third is too small for what runs in
// it, and for the trace's longer prompts.
var engines = []settings{
	{Name: "blocks-of-32", BlockTokens: 32, Blocks: 512, MaxBatchedTokens: 2048, MaxSequences: 8},
	{Name: "blocks-of-64", BlockTokens: 64, Blocks: 200, MaxBatchedTokens: 1000, MaxSequences: 3},
	{Name: "tight", BlockTokens: 32, Blocks: 96, MaxBatchedTokens: 256, MaxSequences: 16},
}

func engineNames() (names []string) {
	for _, e := range engines {
		names = append(names, e.Name)
	}
	return names
}

// maxTokens is what the tiny model has positions for.
const maxTokens = 8192

// kvBytes is the size of a token in the tiny model's KV cache: of each of two layers, two heads of 32 keys and 32 values,
// in bfloat16.
const kvBytes = 2 * 2 * (32 + 32) * 2

// longest is what a request may have, prompt and answer, in tokens. vLLM refuses a pool that could not hold it.
func (s settings) longest() int { return min(maxTokens, (s.Blocks-1)*s.BlockTokens) }

// flags are vllm serve's.
func (s settings) flags() []string {
	return []string{"--served-model-name", model, "--max-model-len", strconv.Itoa(s.longest()), "--enforce-eager",
		"--enable-prefix-caching", "--enable-prompt-tokens-details",
		"--block-size", strconv.Itoa(s.BlockTokens),
		"--kv-cache-memory-bytes", strconv.Itoa(s.Blocks * s.BlockTokens * kvBytes),
		"--max-num-batched-tokens", strconv.Itoa(s.MaxBatchedTokens), "--max-num-seqs", strconv.Itoa(s.MaxSequences)}
}
