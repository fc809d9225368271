package clients

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// sdk is one language's SDK, as `make clients` has it.
type sdk struct {
	name, program, dir string
	chat               string // the example of a conversation
	fails              string // a program whose session ends by an exception in the middle
	calls              string // a program that names its session in each call, and uses what else the SDK has
	turns              string // a program of four turns, the next one for each line that it reads
	cut                string // the error of a stream that is cut
	env                []string
}

const pythonFails = `
from openai import OpenAI
from pinwheel_session import session
with session(OpenAI(default_headers={"X-Team": "blue"}), "fails") as llm:
    llm.chat.completions.create(model="sim", messages=[{"role": "user", "content": "hello"}])
    raise RuntimeError("the tool broke")
`

const nodeFails = `
import OpenAI from 'openai';
import { withSession } from './session.mjs';
await withSession(new OpenAI(), async (llm) => {
  await llm.chat.completions.create({ model: 'sim', messages: [{ role: 'user', content: 'hello' }] });
  throw new Error('the tool broke');
}, { id: 'fails', headers: { 'X-Team': 'blue' } });
`

const pythonCalls = `
import openai
client, named = openai.OpenAI(), {"X-Session-ID": "call"}
hello = [{"role": "user", "content": "hello"}]
with client.chat.completions.stream(model="sim", messages=hello, n=2, extra_headers=named) as stream:
    choice = stream.get_final_completion().choices[1]
print(choice.index, choice.message.role, choice.finish_reason, choice.message.content)
words = client.completions.create(model="sim", prompt="hello", stream=True, max_tokens=12, extra_headers=named)
print("".join(word.choices[0].text for word in words))
try:
    client.chat.completions.create(model="sim", messages=[], extra_headers=named)
except openai.BadRequestError as error:
    print(error.status_code, error.type, error.body["message"])
client.post(str(client.base_url.join("/finish_session")), cast_to=object, options={"headers": named})
`

const nodeCalls = `
import OpenAI from 'openai';
const client = new OpenAI();
const named = { headers: { 'X-Session-ID': 'call' } };
const messages = [{ role: 'user', content: 'hello' }];
const stream = client.chat.completions.stream({ model: 'sim', messages, n: 2 }, named);
const choice = (await stream.finalChatCompletion()).choices[1];
console.log(choice.index, choice.message.role, choice.finish_reason, choice.message.content);
let text = '';
const words = await client.completions.create({ model: 'sim', prompt: 'hello', stream: true, max_tokens: 12 }, named);
for await (const word of words) text += word.choices[0].text;
console.log(text);
try {
  await client.chat.completions.create({ model: 'sim', messages: [] }, named);
} catch (error) {
  console.log(error.status, error.type, error.error.message);
}
await client.post(new URL('/finish_session', client.baseURL).href, named);
`

func sdks(t *testing.T) []sdk {
	t.Helper()
	packages, err := filepath.Abs(filepath.Join(root, "dist", "clients"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{filepath.Join(packages, "openai"), filepath.Join("node", "node_modules", "openai")} {
		if _, err := os.Stat(file); err != nil {
			t.Fatalf("%v; run `make clients`", err)
		}
	}
	// Of npm on this machine, or of the one that comes in a wheel: the Node beside it.
	node := exec.CommandContext(t.Context(), "go", "run", "./build/npm", "examples/clients/node",
		"exec", "--silent", "-c", "node -p process.execPath")
	node.Dir, node.Stderr = root, os.Stderr
	path, err := node.Output()
	if err != nil {
		t.Fatalf("node: %v", err)
	}
	return []sdk{
		{
			name: "python", program: "python3", dir: "python", chat: "chat.py", fails: pythonFails, calls: pythonCalls,
			turns: pythonTurns, cut: "APIConnectionError",
			env: []string{"PYTHONPATH=" + packages, "PYTHONDONTWRITEBYTECODE=1"},
		},
		{
			name: "node", program: strings.TrimSpace(string(path)), dir: "node", chat: "chat.mjs", fails: nodeFails, calls: nodeCalls,
			turns: nodeTurns, cut: "TypeError",
		},
	}
}

// command is a program of the SDK, told where the gateway is.
func (s sdk) command(t *testing.T, g *gateway, args ...string) *exec.Cmd {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, s.program, args...)
	cmd.Dir = s.dir
	cmd.Env = append(append(os.Environ(), s.env...),
		"OPENAI_BASE_URL=http://"+g.addr+"/v1", "OPENAI_API_KEY=unused", "NO_PROXY=127.0.0.1")
	return cmd
}

func (s sdk) script(t *testing.T, g *gateway, text string) *exec.Cmd {
	t.Helper()
	if s.name == "node" {
		return s.command(t, g, "--input-type=module", "-e", text)
	}
	return s.command(t, g, "-c", text)
}

var turnLine = regexp.MustCompile(
	`(?m)^turn (\d+): (\d+) of (\d+) prompt tokens cached: Replica (\S+) had (\d+) of (\d+) prompt tokens cached\.\.*$`)

// Everything runs on one gateway, one after another: Envoy takes seconds to compile the plugin.
func TestClients(t *testing.T) {
	g := start(t)
	for _, s := range sdks(t) {
		run := func(name string, f func(*testing.T, sdk, *gateway)) {
			t.Run(s.name+"/"+name, func(t *testing.T) {
				g.forget()
				f(t, s, g)
				g.allReleased(t)
			})
		}
		run("chat", chats)
		run("calls", calls)
		run("exception", fails)
		run("cached tokens untold", untoldCache)
		run("SIGINT", func(t *testing.T, s sdk, g *gateway) { interrupted(t, s, g, syscall.SIGINT) })
		run("SIGTERM", func(t *testing.T, s sdk, g *gateway) { interrupted(t, s, g, syscall.SIGTERM) })
		if s.name == "python" {
			run("rollouts", rollouts)
			run("rollouts, SIGINT", func(t *testing.T, s sdk, g *gateway) { rolloutsInterrupted(t, s, g, syscall.SIGINT) })
			run("rollouts, SIGTERM", func(t *testing.T, s sdk, g *gateway) { rolloutsInterrupted(t, s, g, syscall.SIGTERM) })
		}
		run("replica dies", replicaDies)
	}
}

// Three streamed turns go to one replica, which remembers more of each, and what the SDK reads is what it said.
func chats(t *testing.T, s sdk, g *gateway) {
	out, err := s.command(t, g, s.chat, "3").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	turns := turnLine.FindAllStringSubmatch(string(out), -1)
	if len(turns) != 3 || strings.Count(string(out), "\n") != 3 {
		t.Fatalf("printed, want three turns:\n%s", out)
	}
	for i, turn := range turns {
		if turn[1] != fmt.Sprint(i+1) || turn[2] != turn[5] || turn[3] != turn[6] || i > 0 && turn[2] == "0" {
			t.Errorf("turn %d is %q: the usage must be that of the text, and only the first may be cold", i+1, turn[0])
		}
		if turn[4] != turns[0][4] {
			t.Errorf("turn %d went to %s, the first to %s", i+1, turn[4], turns[0][4])
		}
	}
	if seen := g.seen(); len(seen) != 1 {
		t.Errorf("the models saw sessions %v, want one with three turns", seen)
	}
}

// A model server that does not tell what was cached, as vLLM without its flag, ends no program.
func untoldCache(t *testing.T, s sdk, g *gateway) {
	for _, m := range g.models {
		m.mute.Store(true)
		defer m.mute.Store(false)
	}
	programs := map[string][]string{"turn 2: ? of ": {s.chat, "2"}}
	if s.name == "python" {
		programs["4 turns, ? of "] = []string{"rollouts.py", "1", "2", "2"}
	}
	for want, args := range programs {
		if out, err := s.command(t, g, args...).CombinedOutput(); err != nil || !strings.Contains(string(out), want) {
			t.Errorf("%v: %v, want %q in\n%s", args, err, want, out)
		}
	}
}

// A header in each call names the session, too; and what the SDK puts together, chunks and errors, is what the models said.
func calls(t *testing.T, s sdk, g *gateway) {
	out, err := s.script(t, g, s.calls).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	seen := g.seen()
	if len(seen) != 1 || len(seen["call"]) != 1 {
		t.Fatalf("the models saw %v, want the session `call` at one of them", seen)
	}
	home := g.home(t, "call").addr
	want := "1 assistant stop Replica " + home + " had 0 of 8 prompt tokens cached........\n" +
		"Replica " + home + " had 0 of 1 prompt tokens cached....\n" +
		"400 invalid_request_error messages: missing or empty\n"
	if string(out) != want {
		t.Errorf("printed\n%swant\n%s", out, want)
	}
}

// The exception comes through, and the session is released all the same. The client's own headers are sent, too.
func fails(t *testing.T, s sdk, g *gateway) {
	out, err := s.script(t, g, s.fails).CombinedOutput()
	if err == nil || !strings.Contains(string(out), "the tool broke") || strings.Contains(string(out), "not released") {
		t.Errorf("%v\n%s", err, out)
	}
	if seen := g.seen(); len(seen) != 1 || len(seen["fails"]) != 1 {
		t.Errorf("the models saw %v, want the session `fails`", seen)
	} else if home := g.home(t, "fails"); home.last.Get("X-Team") != "blue" {
		t.Errorf("the model saw %v, want X-Team: blue", home.last)
	}
}

// A signal in the middle of a stream ends the turn at the model, and the session.
func interrupted(t *testing.T, s sdk, g *gateway, signal syscall.Signal) {
	g.hold(true)
	cmd := s.command(t, g, s.chat, "3")
	var out envoytest.Log
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "a turn is under way", func() bool { return g.running() == 1 })
	if n := g.open(t); n != 1 {
		t.Errorf("%d sessions are open, want one", n)
	}
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code == 0 || strings.Contains(out.Tail(99), "not released") {
		t.Errorf("exit code %d after %v\n%s", code, signal, out.Tail(99))
	}
	until(t, "the model has stopped to generate", func() bool { return g.running() == 0 })
}

// Some hundred episodes at once: each stays on one replica, and all replicas have work.
func rollouts(t *testing.T, s sdk, g *gateway) {
	out, err := s.command(t, g, "rollouts.py", "60", "5", "2").CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "300 rollouts, 0 failed, 600 turns, ") {
		t.Fatalf("%v\n%s", err, out)
	}
	seen, homes := g.seen(), map[string]int{}
	for id, turns := range seen {
		if len(turns) != 1 {
			t.Errorf("session %s had its turns at %v, want one replica", id, turns)
		}
		for addr, n := range turns {
			homes[addr]++
			if n != 2 {
				t.Errorf("session %s had %d turns, want 2", id, n)
			}
		}
	}
	if len(seen) != 300 || len(homes) != 3 {
		t.Errorf("%d sessions on %v, want 300 on three replicas", len(seen), homes)
	}
}

// All rollouts that are under way are released.
func rolloutsInterrupted(t *testing.T, s sdk, g *gateway, signal syscall.Signal) {
	g.hold(true)
	cmd := s.command(t, g, "rollouts.py", "30", "4", "2")
	var out envoytest.Log
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "all turns are under way", func() bool { return g.running() == 120 })
	if n := g.open(t); n != 120 {
		t.Errorf("%d sessions are open, want 120", n)
	}
	if err := cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code == 0 || strings.Contains(out.Tail(999), "not released") {
		t.Errorf("exit code %d after %v\n%s", code, signal, out.Tail(99))
	}
}

const pythonGone = `
import asyncio
from openai import AsyncOpenAI, OpenAI
from pinwheel_session import async_session, session
def ends(block):
    try:
        block()
    except Exception as error:
        print(type(error).__name__, error)
def gone(id, close=False):
    client = OpenAI(max_retries=0)
    with session(client, id):
        if close:
            client.close()
        raise ValueError("mine")
async def gone_async(id, close=False):
    client = AsyncOpenAI(max_retries=0)
    async with async_session(client, id):
        if close:
            await client.close()
        raise ValueError("mine")
for id, close in [(None, False), ("é", False), ("a\nb", False), (None, True)]:
    ends(lambda: gone(id, close))
    ends(lambda: asyncio.run(gone_async(id, close)))
`

const nodeGone = `
import OpenAI from 'openai';
import { withSession } from './session.mjs';
for (const id of [undefined, '語', 'a\nb', null, '']) {
  try {
    await withSession(new OpenAI({ maxRetries: 0 }), async () => { throw new RangeError('mine'); }, { id });
  } catch (error) {
    console.log(error.constructor.name, error.message);
  }
}
`

// Whatever keeps the release from the gateway, what comes out of the block is what ended it.
func TestReleaseHidesNothing(t *testing.T) {
	g := &gateway{addr: net.JoinHostPort("127.0.0.1", freePort(t))} // nobody listens there
	for _, s := range sdks(t) {
		text, want := pythonGone, strings.Repeat("ValueError mine\n", 8)
		if s.name == "node" {
			text, want = nodeGone, strings.Repeat("RangeError mine\n", 5)
		}
		var told strings.Builder
		cmd := s.script(t, g, text)
		cmd.Stderr = &told
		out, err := cmd.Output()
		if err != nil || string(out) != want || strings.Count(told.String(), "is not released: ") != strings.Count(want, "\n") {
			t.Errorf("%s: %v\n%s%s", s.name, err, out, told.String())
		}
	}
}
