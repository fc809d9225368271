package trace

import (
	"bufio"
	"encoding/json"
)

// chatWriter writes a session a line, at once, with made-up text, and holds all names. The text at a place of the prompt depends on the block
// that it belongs to, so sessions are equal as far as their blocks and the ends of their turns are.
type chatWriter struct {
	out           *bufio.Writer
	bytesPerToken int
	names         writtenNames
}

// What a message takes beside its content, with its line's end.
const (
	userFrame      = len(`{"role":"user","content":""}` + "\n")
	assistantFrame = len(`{"role":"assistant","content":""}` + "\n")
	frameEnd       = len(`"}` + "\n") // of either, behind the content
)

type chatRow struct {
	Task     json.RawMessage `json:"task_id,omitempty"`
	Trial    json.RawMessage `json:"trial,omitempty"`
	Messages []chatMessage   `json:"messages"`
}

type chatMessage struct {
	Role    string `json:"role"`
	Content string `json:"content"`
}

func (w *chatWriter) Write(s Session) error {
	last := s.Turns[len(s.Turns)-1]
	text := filler{ids: AppendBlocks(nil, last.Blocks), size: s.BlockTokens * w.bytesPerToken}
	for _, b := range []byte(s.ID) {
		text.rest = (text.rest ^ uint64(b)) * fnvPrime
	}
	task, trial, ok := cutLast(s.ID)
	if !ok {
		task, trial = s.ID, "0"
	}
	row := chatRow{Task: nameText(task), Trial: nameText(trial)}
	at := 0 // bytes written
	for i, t := range s.Turns {
		if !extends(last.Blocks, t.Blocks) {
			return cannotHold(Chat, s, "turn %d is not the beginning of the last", i)
		}
		// A token's worth of bytes, less one, is lost in counting: that much a message may be longer.
		prompt, spare := t.Input*w.bytesPerToken, w.bytesPerToken-1
		size := max(prompt-at, min(userFrame, prompt-at+spare))
		if size < userFrame {
			return cannotHold(Chat, s, "turn %d: %d bytes are too few for a message", i, size)
		}
		row.Messages = append(row.Messages, chatMessage{"user", text.at(at+userFrame-frameEnd, size-userFrame)})
		at += size
		answer := t.Output * w.bytesPerToken
		if answer = max(answer, min(assistantFrame, answer+spare)); answer < assistantFrame {
			return cannotHold(Chat, s, "turn %d: %d generated tokens are too few for a message", i, t.Output)
		}
		row.Messages = append(row.Messages, chatMessage{"assistant", text.at(at+assistantFrame-frameEnd, answer-assistantFrame)})
		at += answer
	}
	if err := w.names.add(Chat, s, task+"/"+trial); err != nil {
		return err
	}
	line, err := json.Marshal(row)
	if err != nil {
		return err
	}
	if _, err := w.out.Write(line); err != nil {
		return err
	}
	return w.out.WriteByte('\n')
}

func (w *chatWriter) Close() error { return w.out.Flush() }

// filler makes text up.
type filler struct {
	ids  []uint64
	size int    // bytes of a block
	rest uint64 // stands for the id of what is no full block
}

// at returns n bytes for the place from.
func (f filler) at(from, n int) string {
	text := make([]byte, n)
	for i := range text {
		place := from + i
		id := f.rest
		if block := place / f.size; block < len(f.ids) {
			id = f.ids[block]
		}
		x := (id ^ uint64(place/8)*fnvPrime) * 0x9e3779b97f4a7c15
		text[i] = "abcdefghijklmnopqrstuvwxyz012345"[x>>(59-5*(place%8))&31]
	}
	return string(text)
}
