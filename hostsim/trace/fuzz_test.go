package trace

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"
)

// fuzzFormat gives a reader any text: it ends without a panic, names bad lines and goes on, and the sessions that it does
// return hold their invariants and are written, where the format can be, to a text that is read again.
func fuzzFormat(f *testing.F, format Format, seeds ...string) {
	for _, seed := range seeds {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, _, err := Open(strings.NewReader(text), Options{Format: format})
		if err != nil {
			if strings.HasPrefix(text, "\x1f\x8b") {
				return
			}
			t.Fatal(err)
		}
		w, _ := NewWriter(io.Discard, Options{Format: format})
		for {
			s, err := r.Next()
			if errors.Is(err, ErrBadLine) {
				continue
			}
			if err != nil {
				break
			}
			checkSession(t, s)
			if s.Replays {
				checkReplays(t, s)
			}
			if w == nil {
				continue
			}
			if err := w.Write(s); err != nil && !errors.Is(err, ErrCannotHold) {
				t.Fatal(err)
			}
		}
		if w != nil {
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// head returns the first n lines of a trace of testdata.
func head(f *testing.F, path string, n int) string {
	f.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		f.Fatal(err)
	}
	return strings.Join(strings.SplitAfterN(string(text), "\n", n+1)[:n], "")
}

func FuzzWEKAPlain(f *testing.F) {
	fuzzFormat(f, WEKAPlain, `{"id":"a","block_size":64,"tool_tokens":64,"system_tokens":9,"requests":[{"t":0,"type":"n","in":130,"out":1,"hash_ids":[1,2],"api_time":1.5},{"t":1,"type":"subagent","requests":[{"t":0,"in":64,"out":2,"hash_ids":[9]}]}]}`, "{}\nnull")
}

func FuzzMooncake(f *testing.F) {
	fuzzFormat(f, MooncakePlain, `{"timestamp": 0, "input_length": 1100, "output_length": 5, "hash_ids": [0, 1, 2]}
{"timestamp": 2000, "input_length": 1536, "output_length": 7, "hash_ids": [0, 1, 9]}`, "{}\nnull\n[]")
}

func FuzzMooncakeCompact(f *testing.F) {
	fuzzFormat(f, MooncakeCompact, head(f, mooncakeConversation, 20), "[]\nnull\n{}")
}

func FuzzQwen(f *testing.F) { fuzzFormat(f, Qwen, qwenRows, "{}\nnull") }

func FuzzGroups(f *testing.F) {
	fuzzFormat(f, Groups, `{"group":"g","stream":0,"prompt_len":100,"system_len":32,"out_lens":[10,7],"obs_lens":[30]}
{"group":7,"prompt_len":40,"out_lens":[3],"obs_lens":[0]}`, "{}\nnull")
}

func FuzzChat(f *testing.F) {
	fuzzFormat(f, Chat, `{"task_id":1,"trial":0,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":null},{"role":"tool"}]}`,
		head(f, tauBench, 1), "{}\nnull")
}

func FuzzNeMoGym(f *testing.F) {
	fuzzFormat(f, NeMoGym, head(f, neMoGym, 1), `{"responses_create_params":{"instructions":"a","input":"x"},"response":{"output":[{"type":"function_call_output"}]}}`)
}

func FuzzDecisionLog(f *testing.F) { fuzzFormat(f, DecisionLog, logLines, "{}\nnull") }

// Whatever the first line is, Open names a format or says why not.
func FuzzOpen(f *testing.F) {
	for _, seed := range []string{qwenRows, logLines, "[1]", "{}", "", "\x1f\x8b\x08", head(f, "testdata/weka_cc_24.ci.compact.jsonl", 1)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		r, format, err := Open(strings.NewReader(text), Options{})
		if (err == nil) != (r != nil) || (err == nil) != (format != "") {
			t.Fatalf("%v, %q, %v", r, format, err)
		}
	})
}
