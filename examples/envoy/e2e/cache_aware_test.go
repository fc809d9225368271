package e2e

import (
	"fmt"
	"strings"
	"testing"
)

// conversation is a chat body of about n bytes whose messages begin with the text.
func conversation(begin string, n int) string {
	const message = `{"model":"m","messages":[{"role":"user","content":"%s %s"}],"seed":1}`
	return fmt.Sprintf(message, begin, strings.Repeat("words ", n/6))
}

// Under cache_aware new sessions go where their prompt was sent before, whatever
// its size and however many come at once; turns of a session stay where it is.
func TestCacheAware(t *testing.T) {
	each(t, readsPrompts, func(t *testing.T, g *gateway) {
		before := g.quietCounts(t)
		prompts := []string{conversation("red", 2_000), conversation("green", 50_000), conversation("blue", 200_000), conversation("grey", 3<<20)}
		ask := func(t *testing.T, id, body, reason string) string {
			g.opened(id)
			r := g.chat(t, chunked(body), "X-Session-ID", id)
			g.expect(t, r, reason)
			return r.Served
		}
		var homes []string
		for _, p := range prompts {
			homes = append(homes, ask(t, newID(), p, "placed"))
		}
		if homes[0] == homes[1] || homes[1] == homes[2] || homes[0] == homes[2] {
			t.Errorf("three prompts on %v", homes[:3])
		}
		ids := newIDs(60)
		for _, reason := range []string{"placed", "pinned"} {
			together(len(ids), func(i int) {
				k := i % len(prompts)
				if served := ask(t, ids[i], prompts[k], reason); served != homes[k] {
					t.Errorf("%s: a session with prompt %d on %s, it is known on %s", reason, k, served, homes[k])
				}
			})
		}
		// Another prompt moves no session, and one without a body goes by load.
		if served := ask(t, ids[0], prompts[1], "pinned"); served != homes[0] {
			t.Errorf("a pinned session moved to %s", served)
		}
		id := newID()
		g.opened(id)
		g.turn(t, id, "placed")
		if late := g.quietCounts(t)[statBodyLate] - before[statBodyLate]; late != 0 {
			t.Errorf("%d requests were routed without their bodies", late)
		}
	})
}
