package plugin

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// conversation is a chat body whose first message is the given number of words.
func conversation(words int, kind string, more ...string) string {
	return `{"model":"m","messages":[{"role":"user","content":"` + strings.Repeat(kind+" words ", words) + `"}` + strings.Join(more, "") + `]`
}

// Under cache_aware a session without a pin waits for its prompt, wherever its id
// stands, and goes where that prompt is cached; one with a pin does not wait.
func TestCacheAwareReadsThePromptsOfNewSessions(t *testing.T) {
	g := startReading(t, 2, true, `"policy":"cache_aware",`+threeReplicas+`,"session":{"body":["user"]}`)
	byHeader := func(id, body string) result {
		return g.do(with(chat(body+`,"stream":true`, `}`), sessionHeader(id)))
	}
	byBody := func(id, body string) result {
		return g.do(chat(body, `,"user":"`+id+`"`, `}`))
	}
	home := map[string]string{}
	for _, kind := range []string{"red", "green", "blue"} {
		r := byHeader(kind, conversation(2000, kind))
		if home[kind] = r.replica; r.reason != "placed" || r.RequestBody != conversation(2000, kind)+`,"stream":true}` {
			t.Fatalf("%s: %s", kind, r.reason)
		}
	}
	for i := range 6 {
		for kind, replica := range home {
			if r := byHeader(fmt.Sprint(kind, " header ", i), conversation(2000, kind, `,{"role":"assistant"}`)); r.replica != replica || r.reason != "placed" {
				t.Errorf("%s %d by header: %s on %s, want placed on %s", kind, i, r.reason, r.replica, replica)
			}
			if r := byBody(fmt.Sprint(kind, " body ", i), conversation(2000, kind)); r.replica != replica || r.reason != "placed" {
				t.Errorf("%s %d by body: %s on %s, want placed on %s", kind, i, r.reason, r.replica, replica)
			}
		}
	}
	// A pin goes before any prompt.
	if r := byHeader("red", conversation(2000, "green")); r.reason != "pinned" || r.replica != home["red"] {
		t.Errorf("another prompt: %s on %s", r.reason, r.replica)
	}
	if r := byBody("red", conversation(2000, "green")); r.reason != "pinned" || r.replica != home["red"] {
		t.Errorf("another prompt, by body: %s on %s", r.reason, r.replica)
	}
	// And needs no body: nothing waits, nothing is read.
	before := g.Counters().HostCalls["env.proxy_get_buffer_bytes"]
	byHeader("red", conversation(2000, "red"))
	if n := g.Counters().HostCalls["env.proxy_get_buffer_bytes"] - before; n != 0 {
		t.Errorf("%d reads for a pinned turn", n)
	}
	// A request without a session is not placed, so its prompt does not matter.
	if r := g.do(chat(conversation(2000, "red") + `}`)); r.reason != "keyless" {
		t.Errorf("without an id: %s", r.reason)
	}
	// A prompt behind its id is read once the id says that there is no pin.
	if r := g.do(chat(`{"user":"late","messages":[{"content":"`, strings.TrimPrefix(conversation(2000, "green"), `{"model":"m","messages":[{"role":"user","content":"`)+`}`)); r.reason != "placed" {
		t.Errorf("id first: %s", r.reason)
	}
}

// cache_aware alone asks for bodies too, and does without them as session.body does.
func TestCacheAwareWithoutBodies(t *testing.T) {
	g := startReading(t, 1, false, `"policy":"cache_aware",`+threeReplicas)
	w := g.pausedChat(0, sessionHeader("s")).chunk(conversation(100, "red")+"}", true)
	w.still("at first")
	g.Advance(1600 * time.Millisecond)
	home := w.goneOn("in time", "placed")
	if r := g.on(0, with(chat(conversation(100, "red")+"}"), sessionHeader("s"))); r.reason != "pinned" || r.replica != home {
		t.Errorf("the next turn: %s on %s, want pinned on %s", r.reason, r.replica, home)
	}
	for _, request := range []string{"GET", "keyless"} {
		r := turnOf("new " + request)
		if r.Body = ""; request == "keyless" {
			r = chat(`{}`)
		}
		if got := g.on(0, r); got.Hangs || got.Status != 200 {
			t.Errorf("%s: %+v", request, got)
		}
	}
}
