package e2e

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

func TestFinishSessionForms(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		before := g.quietCounts(t)
		big := func() io.Reader { return strings.NewReader(strings.Repeat("x", 300<<10)) }
		// Without a length the body is chunked.
		chunked := func() io.Reader { return io.MultiReader(big()) }
		none := func() io.Reader { return nil }
		cases := []struct {
			name   string
			id     string
			method string
			query  bool // else in the session header
			body   func() io.Reader
		}{
			{"query", newID(), "POST", true, none},
			{"header", newID(), "POST", false, none},
			{"DELETE", newID(), "DELETE", true, none},
			{"DELETE by header", newID(), "DELETE", false, none},
			{"small body", newID(), "POST", true, func() io.Reader { return strings.NewReader("{}") }},
			{"300 KB body", newID(), "POST", true, big},
			{"300 KB chunked", newID(), "POST", true, chunked},
			{"300 KB body by header", newID(), "POST", false, big},
			{"escaped", newID() + " /?&=%+#é\"\\", "POST", true, none},
		}
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				send := func() reply {
					if c.query {
						return g.finish(t, c.method, "?session_id="+url.QueryEscape(c.id), c.body())
					}
					return g.finish(t, c.method, "", c.body(), "X-Session-ID", c.id)
				}
				acknowledged(t, send(), c.id) // unknown
				g.turn(t, c.id, "placed")
				g.turn(t, c.id, "pinned")
				acknowledged(t, send(), c.id) // known
				acknowledged(t, send(), c.id) // repeated
				g.turn(t, c.id, "placed")     // it was gone
				acknowledged(t, send(), c.id)
			})
		}
		g.waitOpen(t, 0, 0, 0)
		g.waitCount(t, before, statReleased, uint64(2*len(cases)))
		g.nothingLeaks(t)
	})
}

func TestFinishSessionList(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		ids := newIDs(9)
		g.turns(t, ids, "placed")
		list := strings.Join(append([]string{"never-seen"}, ids[:7]...), ",")
		if r := g.finish(t, http.MethodPost, "?session_id="+list, nil); r.Status != 200 {
			t.Errorf("list: %d %s", r.Status, r.Body)
		}
		g.waitOpenTotal(t, 2)
		g.turns(t, ids[7:], "pinned")
		g.turns(t, ids[:7], "placed")
		g.nothingLeaks(t)
	})
}

func TestFinishSessionWithoutID(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		id := newID()
		g.turn(t, id, "placed")
		for _, query := range []string{"", "?", "?session_id=", "?session=x", "?other=1&session_id"} {
			if r := g.finish(t, http.MethodPost, query, nil); r.Status != 400 {
				t.Errorf("POST /finish_session%s: %d, want 400 (%s)", query, r.Status, r.Body)
			}
		}
		g.turn(t, id, "pinned")
		g.nothingLeaks(t)
	})
}

// A client that writes its whole body before it reads gets the whole answer. The
// connection is not promised to last: Envoy closes it after an answer that came
// before the body's end.
func TestFinishSessionAnswerSurvivesUnreadBody(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		for i := range 15 {
			conn := g.dial(t)
			id := newID()
			g.opened(id)
			g.expect(t, conn.get(t, "X-Session-ID: "+id), "placed")
			size := []int{1, 30, 300 << 10}[i%3]
			acknowledged(t, conn.send(t, fmt.Sprintf("POST /finish_session?session_id=%s HTTP/1.1\r\nHost: llm\r\nContent-Length: %d\r\n\r\n%s",
				id, size, strings.Repeat("x", size))), id)
		}
		g.waitOpen(t, 0, 0, 0)
		g.nothingLeaks(t)
	})
}

// Without a body the connection stays usable, as polite clients expect.
func TestFinishSessionKeepsConnection(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		conn := g.dial(t)
		for range 10 {
			id := newID()
			g.opened(id)
			g.expect(t, conn.get(t, "X-Session-ID: "+id), "placed")
			acknowledged(t, conn.send(t, "POST /finish_session?session_id="+id+" HTTP/1.1\r\nHost: llm\r\nContent-Length: 0\r\n\r\n"), id)
			acknowledged(t, conn.send(t, "DELETE /finish_session?session_id="+id+" HTTP/1.1\r\nHost: llm\r\n\r\n"), id)
		}
		g.nothingLeaks(t)
	})
}

func TestReleasedCapacityIsTakenNext(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		homes := g.turns(t, newIDs(30), "placed")
		freed := g.replicas[1].Addr
		var gone []string
		for id, home := range homes {
			if home == freed && len(gone) < 6 {
				gone = append(gone, id)
			}
		}
		g.release(t, gone...)
		for _, id := range gone {
			delete(homes, id)
		}
		for id, addr := range g.turns(t, newIDs(6), "placed") {
			if addr != freed {
				t.Errorf("new session %s went to %s, but %s has 6 fewer", id, addr, freed)
			}
		}
		for id, addr := range g.turns(t, keys(homes), "pinned") {
			if addr != homes[id] {
				t.Errorf("session %s moved from %s to %s", id, homes[id], addr)
			}
		}
		g.waitOpen(t, 10, 10, 10)
	})
}

func TestFinishSessionSecret(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		id := newID()
		g.turn(t, id, "placed")
		g.update(t, func(c map[string]any) { c["release"] = map[string]any{"secret": "open sesame"} })
		defer g.update(t, func(map[string]any) {})
		query := "?session_id=" + id
		const header = "x-pinwheel-secret"
		for name, h := range map[string][]string{
			"none":      nil,
			"wrong":     {header, "open sesam"},
			"empty":     {header, ""},
			"longer":    {header, "open sesame!"},
			"elsewhere": {"authorization", "open sesame"},
		} {
			if r := g.finish(t, http.MethodPost, query, nil, h...); r.Status != 401 {
				t.Errorf("secret %s: %d, want 401 (%s)", name, r.Status, r.Body)
			}
			if r := g.finish(t, http.MethodPost, query, strings.NewReader("{}"), h...); r.Status != 401 {
				t.Errorf("secret %s, with body: %d, want 401 (%s)", name, r.Status, r.Body)
			}
		}
		g.turn(t, id, "pinned")
		acknowledged(t, g.finish(t, http.MethodPost, query, nil, header, "open sesame"), id)
		g.turn(t, id, "placed")
		g.nothingLeaks(t)
	})
}
