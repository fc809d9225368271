package clients

import (
	"bufio"
	"io"
	"os"
	"testing"
)

const pythonTurns = `
import openai
from pinwheel_session import session
messages = [{"role": "user", "content": "hello " * 200}]
with session(openai.OpenAI(max_retries=0), "lives") as llm:
    for turn in range(4):
        try:
            answer = llm.chat.completions.create(model="sim", messages=messages, stream=True, max_tokens=1)
            print(turn, *(c.choices[0].finish_reason for c in answer), flush=True)
        except Exception as error:
            print(turn, type(error).__name__, flush=True)
        input()
`

const nodeTurns = `
import { createInterface } from 'node:readline';
import OpenAI from 'openai';
import { withSession } from './session.mjs';
const input = createInterface({ input: process.stdin });
const lines = input[Symbol.asyncIterator]();
const messages = [{ role: 'user', content: 'hello '.repeat(200) }];
await withSession(new OpenAI({ maxRetries: 0 }), async (llm) => {
  for (let turn = 0; turn < 4; turn++) {
    try {
      const reasons = [];
      const answer = await llm.chat.completions.create({ model: 'sim', messages, stream: true, max_tokens: 1 });
      for await (const chunk of answer) reasons.push(chunk.choices[0].finish_reason);
      console.log(turn, ...reasons);
    } catch (error) {
      console.log(turn, error.constructor.name);
    }
    await lines.next();
  }
}, { id: 'lives' });
input.close();
`

// The session's replica dies. A turn that has no answer yet is repeated on a spare by Envoy, and the client sees nothing;
// one in the middle of its stream is the client's to repeat.
func replicaDies(t *testing.T, s sdk, g *gateway) {
	cmd := s.script(t, g, s.turns)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	pipe, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	out := bufio.NewScanner(pipe)
	line := func() string { out.Scan(); return out.Text() }
	next := func() { _, _ = io.WriteString(in, "\n") }

	if got := line(); got != "0 length" {
		t.Errorf("the first turn said %q", got)
	}
	home := g.home(t, "lives")
	home.http.Close()
	next()
	if got := line(); got != "1 length" {
		t.Errorf("the turn after its replica's death said %q", got)
	}
	home.reopen(t)
	g.hold(true)
	next()
	until(t, "a stream has begun", func() bool { return g.running() == 1 })
	for _, m := range g.models {
		if m.Stats().Running == 1 {
			home = m
		}
	}
	home.http.Close()
	if got := line(); got != "2 "+s.cut {
		t.Errorf("the turn whose stream was cut said %q", got)
	}
	home.reopen(t)
	g.hold(false)
	next()
	if got := line(); got != "3 length" {
		t.Errorf("the turn that is repeated said %q", got)
	}
	next()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}
