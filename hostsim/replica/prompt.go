package replica

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
)

// BytesPerToken is how much JSON text of a hand-made prompt counts as one token.
const BytesPerToken = 4

// completionRequest is the part of OpenAI's two completion requests that the simulation reads.
type completionRequest struct {
	Model         string            `json:"model"`
	Messages      []json.RawMessage `json:"messages"`
	Prompt        json.RawMessage   `json:"prompt"`
	MaxTokens     *int              `json:"max_tokens"`
	MaxCompletion *int              `json:"max_completion_tokens"`
	N             *int              `json:"n"`
	Stream        bool              `json:"stream"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	Sim *simPrompt `json:"sim_prompt"`
}

// simPrompt stands for a recorded prompt whose text is not known: so many tokens, and these blocks as runs of
// [first id, count].
type simPrompt struct {
	Tokens int         `json:"tokens"`
	Blocks [][2]uint64 `json:"blocks"`
}

// prompt is what a request asks the simulated model to do.
type prompt struct {
	model        string
	tokens       int
	blocks       []uint64
	output       int    // tokens to generate in each choice
	finish       string // why the generation ends: "stop" by itself, "length" where the request bounds it
	choices      int    // answers to generate from the one prompt, 1 to maxChoices
	stream       bool
	includeUsage bool
}

const (
	defaultOutput = 16
	maxOutput     = 1 << 20
	maxPrompt     = 1 << 26
	maxChoices    = 128 // OpenAI's bound for n
)

// parsePrompt decodes a request body. chat says which of messages and prompt it must have.
func parsePrompt(body []byte, chat bool, blockTokens int) (prompt, error) {
	var r completionRequest
	if err := json.Unmarshal(body, &r); err != nil {
		return prompt{}, fmt.Errorf("the body is not a JSON object of this request: %w", err)
	}
	p := prompt{model: r.Model, output: defaultOutput, finish: "stop", choices: 1, stream: r.Stream, includeUsage: r.StreamOptions.IncludeUsage}
	for _, n := range []*int{r.MaxTokens, r.MaxCompletion} {
		if n != nil {
			p.output, p.finish = *n, "length"
		}
	}
	if p.output < 0 || p.output > maxOutput {
		return prompt{}, fmt.Errorf("max_tokens: %d is outside 0 to %d", p.output, maxOutput)
	}
	if r.N != nil {
		p.choices = *r.N
	}
	if p.choices < 1 || p.choices > maxChoices {
		return prompt{}, fmt.Errorf("n: %d is outside 1 to %d", p.choices, maxChoices)
	}
	switch {
	case r.Sim != nil:
		err := p.fromRuns(r.Sim, blockTokens)
		return p, err
	case chat && len(r.Messages) == 0:
		return prompt{}, errors.New("messages: missing or empty")
	case !chat && (len(r.Prompt) == 0 || string(r.Prompt) == "null"):
		return prompt{}, errors.New("prompt: missing")
	}
	var text bytes.Buffer
	if chat {
		for _, m := range r.Messages {
			// Compact form, so that a client's white space makes no difference. One line a message, so that a
			// conversation that grows begins with the bytes that it had before.
			if err := json.Compact(&text, m); err != nil {
				return prompt{}, fmt.Errorf("messages: %w", err)
			}
			text.WriteByte('\n')
		}
	} else {
		// Without its closing quote a text that grows begins with the bytes that it had before.
		text.Write(bytes.TrimSuffix(r.Prompt, []byte(`"`)))
	}
	p.tokens = max(1, text.Len()/BytesPerToken)
	p.blocks = hashBlocks(text.Bytes(), blockTokens*BytesPerToken)
	return p, nil
}

func (p *prompt) fromRuns(sim *simPrompt, blockTokens int) error {
	if sim.Tokens < 1 || sim.Tokens > maxPrompt {
		return fmt.Errorf("sim_prompt.tokens: %d is outside 1 to %d", sim.Tokens, maxPrompt)
	}
	p.tokens = sim.Tokens
	full := uint64(sim.Tokens / blockTokens)
	p.blocks = make([]uint64, 0, full)
	for _, run := range sim.Blocks {
		if run[1] > full-uint64(len(p.blocks)) {
			return fmt.Errorf("sim_prompt.blocks: more than the %d full blocks of %d tokens", full, sim.Tokens)
		}
		for i := range run[1] {
			p.blocks = append(p.blocks, run[0]+i)
		}
	}
	return nil
}

// hashBlocks names each full block of text by a hash of it and of everything before it: equal ids mean equal prefixes.
func hashBlocks(text []byte, size int) []uint64 {
	ids := make([]uint64, 0, len(text)/size)
	var parent [8]byte
	for ; len(text) >= size; text = text[size:] {
		h := fnv.New64a()
		h.Write(parent[:])
		h.Write(text[:size])
		ids = append(ids, h.Sum64())
		binary.LittleEndian.PutUint64(parent[:], h.Sum64())
	}
	return ids
}
