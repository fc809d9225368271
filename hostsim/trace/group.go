package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// groupReader reads the lengths of RL rollouts, one stream a line:
//
//	{"group": "task-7", "stream": 0, "prompt_len": 11400, "out_lens": [210, 90], "obs_lens": [1800]}
//
// A stream's first prompt has prompt_len tokens; each further one is the prompt before it, what was generated (out_lens)
// and what a tool or a test said to it (obs_lens: one fewer than out_lens, or as many, where the last plays no part).
// Streams of a group begin with the same prompt. A stream without "stream" is no sample of a group. system_len, which may
// be left out, is how many tokens of the prompt are the same in all lines that have the same number there.
//
// It holds the names of groups and streams, and nothing else of what it has returned.
type groupReader struct {
	lines  *lines
	tokens int // of a block
	rows   uint64
	groups map[string]promptGroup
	ids    map[string]int
}

// promptGroup is what the streams of a group have in common.
type promptGroup struct {
	number         uint64
	prompt, system int
	line           int
}

func newGroupReader(l *lines, o Options) *groupReader {
	return &groupReader{lines: l, tokens: o.blockTokens(), groups: map[string]promptGroup{}, ids: map[string]int{}}
}

type groupRow struct {
	Group  json.RawMessage `json:"group"`
	Stream json.RawMessage `json:"stream,omitempty"`
	Prompt int             `json:"prompt_len"`
	System int             `json:"system_len,omitempty"`
	Out    []int           `json:"out_lens"`
	Obs    []int           `json:"obs_lens"`
}

func (r *groupReader) Next() (Session, error) {
	text, err := r.lines.next()
	if err != nil {
		return Session{}, err
	}
	s, err := r.parse(text)
	if err != nil {
		return Session{}, r.lines.bad(err)
	}
	return s, nil
}

func (r *groupReader) parse(text []byte) (Session, error) {
	var row groupRow
	if err := strictUnmarshal(text, &row); err != nil {
		return Session{}, err
	}
	name, err := nameOf(row.Group)
	if err != nil || name == "" {
		return Session{}, errors.New("group: not a number or a text")
	}
	stream, err := nameOf(row.Stream)
	if err != nil {
		return Session{}, errors.New("stream: not a number or a text")
	}
	s := Session{ID: name, System: row.System, BlockTokens: r.tokens, Replays: true}
	if row.Stream != nil {
		s.ID, s.Group = name+"/"+stream, name
	}
	if line := r.ids[s.ID]; line != 0 {
		return Session{}, fmt.Errorf("group, stream: %q was on line %d already", s.ID, line)
	}
	if row.System < 0 || row.System > row.Prompt {
		return Session{}, fmt.Errorf("system_len: %d of a prompt of %d", row.System, row.Prompt)
	}
	g, known := r.groups[name]
	if !known {
		g = promptGroup{uint64(len(r.groups)) + 1, row.Prompt, row.System, r.lines.number}
	}
	if g.prompt != row.Prompt || g.system != row.System {
		return Session{}, fmt.Errorf("prompt_len, system_len: %d and %d, but %d and %d for this group on line %d", row.Prompt, row.System, g.prompt, g.system, g.line)
	}
	if s.Turns, err = row.turns(); err != nil {
		return Session{}, err
	}
	r.rows++
	ownFrom := row.Prompt
	if row.Stream == nil {
		ownFrom = row.System
	}
	nameBlocks(&s, ownFrom, g.number, r.rows)
	r.groups[name], r.ids[s.ID] = g, r.lines.number
	return s, nil
}

// turns adds the lengths up.
func (row *groupRow) turns() ([]Turn, error) {
	if n := len(row.Out); n == 0 || len(row.Obs) != n && len(row.Obs) != n-1 {
		return nil, fmt.Errorf("out_lens, obs_lens: %d and %d of them; out_lens needs one or more, obs_lens one fewer than out_lens or as many", n, len(row.Obs))
	}
	turns := make([]Turn, len(row.Out))
	input := row.Prompt
	for i, out := range row.Out {
		if err := checkTokens(input, out); err != nil {
			return nil, fmt.Errorf("turn %d: %w", i, err)
		}
		turns[i] = Turn{Input: input, Output: out}
		if i < len(row.Obs) {
			if row.Obs[i] < 0 || row.Obs[i] > maxTokens {
				return nil, fmt.Errorf("obs_lens[%d]: %d", i, row.Obs[i])
			}
			input += out + row.Obs[i]
		}
	}
	return turns, nil
}

// groupSpace marks block ids of a group's prompt.
const groupSpace = 1 << 62

// nameBlocks names the blocks of a session whose prompts go on from each other, by their place in it: those inside of the
// system prompt by its length, those before ownFrom tokens by group, the others by the session's own number.
func nameBlocks(s *Session, ownFrom int, group, own uint64) {
	inSystem, inGroup := s.System/s.BlockTokens, max(ownFrom, s.System)/s.BlockTokens
	for i := range s.Turns {
		t := &s.Turns[i]
		n := t.Input / s.BlockTokens
		runs := make([]Run, 0, 3)
		for _, part := range []struct {
			space    uint64
			from, to int
		}{{classSpace | uint64(s.System)<<32, 0, min(n, inSystem)}, {groupSpace | group<<32, inSystem, min(n, inGroup)}, {own << 32, inGroup, n}} {
			if part.from < part.to {
				runs = append(runs, Run{First: part.space | uint64(part.from+1), Count: part.to - part.from})
			}
		}
		t.Blocks = runs
	}
}

// nameOf returns a name that may be written as a text or as a number. Absent is empty.
func nameOf(raw json.RawMessage) (string, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '"' {
		var number json.Number
		if len(raw) > 0 {
			if err := json.Unmarshal(raw, &number); err != nil {
				return "", err
			}
		}
		return number.String(), nil
	}
	var text string
	err := json.Unmarshal(raw, &text)
	return text, err
}
