package replica

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// complete answers one completion request, as one JSON object or as a stream of server-sent events.
func (s *Server) complete(w http.ResponseWriter, r *http.Request, chat bool) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, s.config.MaxBodyBytes))
	if err != nil {
		code := http.StatusBadRequest
		if tooLong := new(http.MaxBytesError); errors.As(err, &tooLong) {
			code = http.StatusRequestEntityTooLarge
		}
		refuse(w, code, err)
		return
	}
	p, err := parsePrompt(body, chat, s.config.BlockTokens)
	if err != nil {
		refuse(w, http.StatusBadRequest, err)
		return
	}
	if p.model == "" {
		p.model = s.config.Model
	}
	cached := s.admit(&p)
	generated := 0
	defer func() { s.end(generated) }()
	if err := s.pause(r.Context(), p.tokens-cached, s.config.PrefillPerToken); err != nil {
		return
	}
	a := answer{server: s, prompt: &p, cached: cached, chat: chat}
	if p.stream {
		generated = a.stream(w, r)
		return
	}
	if err := s.pause(r.Context(), p.output, s.config.DecodePerToken); err != nil {
		return
	}
	generated = p.output * p.choices
	writeJSON(w, http.StatusOK, a.whole())
}

// answer is one completion on its way to the client.
type answer struct {
	server *Server
	prompt *prompt
	cached int
	chat   bool
}

// text tells a reader with curl what a model would not: who answered, and how much of the prompt it remembered.
func (a *answer) text() string {
	return fmt.Sprintf("Replica %s had %d of %d prompt tokens cached.", a.server.config.Name, a.cached, a.prompt.tokens)
}

type object = map[string]any

func (a *answer) usage() object {
	output := a.prompt.output * a.prompt.choices
	return object{
		"prompt_tokens":         a.prompt.tokens,
		"completion_tokens":     output,
		"total_tokens":          a.prompt.tokens + output,
		"prompt_tokens_details": object{"cached_tokens": a.cached},
	}
}

// envelope has what every object of an answer has: the whole one, and each chunk of a stream.
func (a *answer) envelope(kind string, choices ...object) object {
	if choices == nil {
		choices = []object{}
	}
	return object{
		"id": "sim-" + a.server.config.Name, "object": kind, "created": time.Now().Unix(), "model": a.prompt.model,
		"replica": a.server.config.Name, "choices": choices,
	}
}

func (a *answer) whole() object {
	kind := "text_completion"
	if a.chat {
		kind = "chat.completion"
	}
	choices := make([]object, a.prompt.choices)
	for i := range choices {
		choices[i] = object{"index": i, "finish_reason": a.prompt.finish}
		if a.chat {
			choices[i]["message"] = object{"role": "assistant", "content": a.text()}
		} else {
			choices[i]["text"] = a.text()
		}
	}
	o := a.envelope(kind, choices...)
	o["usage"] = a.usage()
	return o
}

// chunkKind is the object name of all events of a stream.
func (a *answer) chunkKind() string {
	if a.chat {
		return "chat.completion.chunk"
	}
	return "text_completion"
}

// chunk is one token of a choice in a stream. The first of a chat says whose words they are, without which SDKs that put
// the chunks together refuse the answer. finish is empty but for the last.
func (a *answer) chunk(index, position int, token, finish string) object {
	choice := object{"index": index, "finish_reason": nil}
	if finish != "" {
		choice["finish_reason"] = finish
	}
	if a.chat {
		delta := object{"content": token}
		if position == 0 {
			delta["role"] = "assistant"
		}
		choice["delta"] = delta
	} else {
		choice["text"] = token
	}
	return a.envelope(a.chunkKind(), choice)
}

// stream sends one event a token and choice, each flushed as soon as it is there, then [DONE]; it returns how many tokens
// were sent. The text's words come first, and dots fill up what was asked for.
func (a *answer) stream(w http.ResponseWriter, r *http.Request) (sent int) {
	w.Header().Set("content-type", "text/event-stream")
	w.Header().Set("cache-control", "no-cache")
	out := http.NewResponseController(w)
	if out.Flush() != nil {
		return 0
	}
	words := strings.SplitAfter(a.text(), " ")
	for position := range a.prompt.output {
		if err := a.server.pause(r.Context(), 1, a.server.config.DecodePerToken); err != nil {
			return sent
		}
		token, finish := ".", ""
		if position < len(words) {
			token = words[position]
		}
		if position == a.prompt.output-1 {
			finish = a.prompt.finish
		}
		for index := range a.prompt.choices {
			if err := writeEvent(w, a.chunk(index, position, token, finish)); err != nil || out.Flush() != nil {
				return sent
			}
			sent++
		}
	}
	if a.prompt.includeUsage {
		last := a.envelope(a.chunkKind())
		last["usage"] = a.usage()
		_ = writeEvent(w, last)
	}
	_, _ = io.WriteString(w, "data: [DONE]\n\n")
	return sent
}

func writeEvent(w io.Writer, o object) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(w, "data: %s\n\n", text)
	return err
}

func writeJSON(w http.ResponseWriter, code int, o object) {
	w.Header().Set("content-type", "application/json")
	w.WriteHeader(code)
	// The client may be gone; there is nobody else to tell.
	_ = json.NewEncoder(w).Encode(o)
}

func refuse(w http.ResponseWriter, code int, err error) {
	writeJSON(w, code, object{"error": object{"message": err.Error(), "type": "invalid_request_error", "code": code}})
}
