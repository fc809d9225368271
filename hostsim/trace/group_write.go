package trace

import (
	"bufio"
	"encoding/json"
	"strings"
)

// groupWriter writes a session a line, at once.
type groupWriter struct{ out *bufio.Writer }

func (w *groupWriter) Write(s Session) error {
	if !s.Replays {
		return cannotHold(Groups, s, "its prompts need not go on from what was generated")
	}
	row := groupRow{System: s.System, Prompt: s.Turns[0].Input, Obs: []int{}}
	name, stream := s.ID, ""
	if s.Group != "" {
		name, stream = s.Group, strings.TrimPrefix(s.ID, s.Group+"/")
		row.Stream = nameText(stream)
	}
	row.Group = nameText(name)
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
