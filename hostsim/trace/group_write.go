package trace

import (
	"bufio"
	"encoding/json"
	"strings"
)

// groupWriter writes a session a line, at once. It holds all names, and of each group the first prompt's length and end.
type groupWriter struct {
	out    *bufio.Writer
	groups map[string]firstPrompt
	names  writtenNames
}

// firstPrompt tells a group's prompt: the id of its last full block stands for all before it.
type firstPrompt struct {
	tokens, system int
	last           uint64
}

func firstPromptOf(s Session) firstPrompt {
	p := firstPrompt{tokens: s.Turns[0].Input, system: s.System}
	if runs := s.Turns[0].Blocks; len(runs) > 0 {
		end := runs[len(runs)-1]
		p.last = end.First + uint64(end.Count)
	}
	return p
}

func (w *groupWriter) Write(s Session) error {
	if !s.Replays {
		return cannotHold(Groups, s, "its prompts need not go on from what was generated")
	}
	row := groupRow{System: s.System, Prompt: s.Turns[0].Input, Obs: []int{}}
	name, id := s.ID, s.ID // it will be read by
	if s.Group != "" {
		stream := strings.TrimPrefix(s.ID, s.Group+"/")
		name, id = s.Group, s.Group+"/"+stream
		row.Stream = nameText(stream)
	}
	row.Group = nameText(name)
	prompt := firstPromptOf(s)
	if known, ok := w.groups[name]; ok && known != prompt {
		return cannotHold(Groups, s, "its first prompt of %d tokens is not the one of group %q (%d tokens)", prompt.tokens, name, known.tokens)
	}
	for i, t := range s.Turns {
		if i > 0 {
			before := s.Turns[i-1]
			obs := t.Input - before.Input - before.Output
			if obs < 0 || !extends(t.Blocks, before.Blocks) {
				return cannotHold(Groups, s, "turn %d: a prompt of %d tokens does not go on from %d and %d generated", i, t.Input, before.Input, before.Output)
			}
			row.Obs = append(row.Obs, obs)
		}
		row.Out = append(row.Out, t.Output)
	}
	text, err := json.Marshal(row)
	if err != nil {
		return err
	}
	if err := w.names.add(Groups, s, id); err != nil {
		return err
	}
	w.groups[name] = prompt
	if _, err := w.out.Write(text); err != nil {
		return err
	}
	return w.out.WriteByte('\n')
}

func (w *groupWriter) Close() error { return w.out.Flush() }

// nameText writes a name so that nameOf reads it.
func nameText(name string) json.RawMessage {
	text, _ := json.Marshal(name) // a text
	return text
}

// cutLast cuts a name at its last slash.
func cutLast(name string) (before, after string, ok bool) {
	if i := strings.LastIndexByte(name, '/'); i >= 0 {
		return name[:i], name[i+1:], true
	}
	return name, "", false
}
