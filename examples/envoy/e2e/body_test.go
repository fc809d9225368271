package e2e

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"
)

// chat posts a JSON body; without a length it goes out in chunks.
func (g *gateway) chat(t *testing.T, body io.Reader, header ...string) reply {
	t.Helper()
	header = append([]string{"Content-Type", "application/json"}, header...)
	r, err := g.client.send(t.Context(), http.MethodPost, chatPath, body, header...)
	if err != nil {
		t.Errorf("chat: %v", err)
	}
	return r
}

func text(s string) io.Reader { return strings.NewReader(s) }

// chunked hides the length.
func chunked(s string) io.Reader { return io.MultiReader(strings.NewReader(s)) }

// slowly hands out the parts, each after a wait.
func slowly(wait time.Duration, parts ...string) io.Reader {
	out, in := io.Pipe()
	go func() {
		for _, p := range parts {
			time.Sleep(wait)
			if _, err := io.WriteString(in, p); err != nil {
				return
			}
		}
		in.Close()
	}()
	return out
}

// sized pads a body to n bytes: the id stands in front of the padding, or behind.
func sized(n int, id string, behind bool) string {
	if behind {
		return `{"prompt":"` + strings.Repeat("x", n) + `","user":"` + id + `"}`
	}
	return `{"metadata":{"session_id":"` + id + `"},"prompt":"` + strings.Repeat("x", n) + `"}`
}

// bodyBytes is the size of the last body that the replica at addr got.
func (g *gateway) bodyBytes(addr string) int64 {
	for _, r := range g.replicas {
		if all := r.Requests(); r.Addr == addr && len(all) > 0 {
			return all[len(all)-1].Body
		}
	}
	return -1
}

func TestSessionIDFromBody(t *testing.T) {
	each(t, readsBodies, func(t *testing.T, g *gateway) {
		before := g.quietCounts(t)
		id, other := newID(), newID()
		g.opened(id)
		g.opened(other)
		g.opened("17" + id)
		home := g.turn(t, id, "placed").Served
		g.turn(t, other, "placed")
		quoted := strings.Replace(id, "s", `\u0073`, 1)
		for _, c := range []struct {
			name, reason string
			body         io.Reader
			header       []string
		}{
			{"top level", "pinned", text(`{"user":"` + id + `"}`), nil},
			{"path", "pinned", text(`{"user":"x","metadata":{"a":1,"session_id":"` + id + `"}}`), nil},
			{"escaped", "pinned", text(`{"\u0075ser":"` + quoted + `"}`), nil},
			{"no length", "pinned", chunked(`{"user":"` + id + `"}`), nil},
			{"slow, in parts", "pinned", slowly(50*time.Millisecond, `{"prompt":"\"user`, `\":\"x","us`, `er":"`+id, `"`, `}`), nil},
			{"first byte late", "pinned", slowly(400*time.Millisecond, `{"user":"`+id+`"}`), nil},
			{"header before body", "pinned", text(`{"user":"` + other + `"}`), []string{"X-Session-ID", id}},
			{"900 KB", "pinned", text(sized(900<<10, id, false)), nil},
			{"1.1 MB", "pinned", text(sized(1100<<10, id, false)), nil},
			{"20 MB", "pinned", text(sized(20<<20, id, false)), nil},
			{"20 MB, no length", "pinned", chunked(sized(20<<20, id, false)), nil},
			{"60 KB, id behind", "pinned", text(sized(60<<10, id, true)), nil},
			{"a prompt that spells it", "keyless", text(`{"prompt":"user: ` + id + `, \"user\":\"` + id + `\""}`), nil},
			{"nested", "keyless", text(`{"messages":[{"user":"` + id + `"}]}`), nil},
			{"no string", "keyless", text(`{"user":["` + id + `"]}`), nil},
			{"truncated", "keyless", text(`{"user":"` + id), nil},
			{"empty body", "keyless", text(``), nil},
			{"empty body, no length", "keyless", chunked(``), nil},
			{"900 KB, id behind", "keyless", text(sized(900<<10, id, true)), nil},
			{"1.1 MB, id behind", "keyless", text(sized(1100<<10, id, true)), nil},
			{"20 MB, id behind", "keyless", chunked(sized(20<<20, id, true)), nil},
			{"encoded", "keyless", text(`{"user":"` + id + `"}`), []string{"Content-Encoding", "gzip"}},
		} {
			r := g.chat(t, c.body, c.header...)
			if g.expect(t, r, c.reason); c.reason == "pinned" && r.Served != home {
				t.Errorf("%s: served by %s, want %s", c.name, r.Served, home)
			}
			if t.Failed() {
				t.Errorf("%s: status %d", c.name, r.Status)
			}
			if want, ok := c.body.(*strings.Reader); ok && g.bodyBytes(r.Served) != want.Size() {
				t.Errorf("%s: %d bytes arrived of %d", c.name, g.bodyBytes(r.Served), want.Size())
			}
		}
		r, err := g.client.send(t.Context(), http.MethodGet, chatPath, nil, "Content-Type", "application/json")
		if g.expect(t, r, "keyless"); err != nil {
			t.Error(err)
		}
		// A client that asks before it sends is answered before the request is routed.
		conn := g.dial(t)
		body := `{"user":"` + id + `"}`
		if _, err := fmt.Fprintf(conn.conn, "POST %s HTTP/1.1\r\nHost: llm\r\nContent-Type: application/json\r\n"+
			"Expect: 100-continue\r\nContent-Length: %d\r\n\r\n", chatPath, len(body)); err != nil {
			t.Fatal(err)
		}
		if line, err := conn.in.ReadString('\n'); err != nil || !strings.Contains(line, " 100 ") {
			t.Errorf("%q, %v; want 100 Continue", line, err)
		}
		if _, err := conn.in.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
		g.expect(t, conn.send(t, body), "pinned")
		// A number is an id by its digits.
		n := "9" + strings.TrimLeft(id, "session-")
		g.opened(n)
		first := g.chat(t, text(`{"user":`+n+`}`))
		g.expect(t, first, "placed")
		if again := g.turn(t, n, "pinned"); again.Served != first.Served {
			t.Errorf("%s in the header is another session", n)
		}
		if late := g.quietCounts(t)[statBodyLate] - before[statBodyLate]; late != 0 {
			t.Errorf("%d requests were routed without their bodies", late)
		}
	})
}

// Bodies over HTTP/2, many at a time, with and without an end in trailers.
func TestSessionIDFromBodyOverHTTP2(t *testing.T) {
	each(t, readsBodies, func(t *testing.T, g *gateway) {
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		transport := &http.Transport{Protocols: protocols}
		defer transport.CloseIdleConnections()
		ids, homes := newIDs(40), make([]string, 40)
		send := func(i int, trailer bool, reason string) string {
			body := []io.Reader{text(sized(i<<10, ids[i], true)), chunked(sized(1100<<10, ids[i], false))}[i%2]
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, g.client.base+chatPath, body)
			if err != nil {
				t.Error(err)
				return ""
			}
			req.Header.Set("Content-Type", "application/json")
			if trailer {
				req.ContentLength, req.Trailer = -1, http.Header{"X-Checksum": {"1"}}
			}
			res, err := transport.RoundTrip(req)
			if err != nil {
				t.Errorf("%s: %v", ids[i], err)
				return ""
			}
			defer res.Body.Close()
			r, _ := read(res)
			g.expect(t, r, reason)
			return r.Served
		}
		for _, id := range ids {
			g.opened(id)
		}
		together(len(ids), func(i int) { homes[i] = send(i, false, "placed") })
		for _, trailer := range []bool{true, false} {
			together(len(ids), func(i int) {
				if served := send(i, trailer, "pinned"); served != homes[i] {
					t.Errorf("%s moved from %s to %s", ids[i], homes[i], served)
				}
			})
		}
	})
}

// A request whose body does not come is routed without it, and its body still
// reaches the replica.
func TestBodyThatComesTooLate(t *testing.T) {
	each(t, readsBodies, func(t *testing.T, g *gateway) {
		before := g.quietCounts(t)
		id := newID()
		g.opened(id)
		g.turn(t, id, "placed")
		const slow = 20
		together(slow, func(i int) {
			body := []io.Reader{
				slowly(3*time.Second, `{"user":"`+id+`"}`),
				slowly(3*time.Second, "", `{"user":"`+id+`"}`),
				slowly(2500*time.Millisecond, `{"user":"`, id+`"}`),
			}[i%3]
			r := g.chat(t, body)
			g.expect(t, r, "keyless")
		})
		g.waitCount(t, before, statBodyLate, slow)
		g.chatIs(t, id, "pinned")
		g.waitInflight(t, 0)
	})
}

func (g *gateway) chatIs(t *testing.T, id, reason string) {
	t.Helper()
	g.expect(t, g.chat(t, text(`{"user":"`+id+`"}`)), reason)
}

// Clients that leave while their requests wait, before and within the body.
func TestClientsThatLeaveWhileTheirRequestsWait(t *testing.T) {
	each(t, readsBodies, func(t *testing.T, g *gateway) {
		before := g.quietCounts(t)
		for round := range 10 {
			together(20, func(i int) {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(50+10*(i%5))*time.Millisecond)
				defer cancel()
				body := slowly(30*time.Millisecond, `{"messages":[`, `"`, strings.Repeat("x", 1000), `x`)
				if i%2 == 0 {
					body = slowly(time.Second, "x")
				}
				if _, err := g.client.send(ctx, http.MethodPost, chatPath, body, "Content-Type", "application/json"); err == nil {
					t.Errorf("round %d: a request that nobody finished was answered", round)
				}
			})
		}
		id := newID()
		g.opened(id)
		g.chatIs(t, id, "placed")
		g.chatIs(t, id, "pinned")
		g.waitInflight(t, 0)
		if late := g.quietCounts(t)[statBodyLate] - before[statBodyLate]; late != 0 {
			t.Errorf("%d requests resumed whose clients had gone", late)
		}
	})
}

// With body handling a release keeps its connection, which it costs otherwise.
func TestReleaseWithABodyKeepsConnection(t *testing.T) {
	each(t, readsBodies, func(t *testing.T, g *gateway) {
		conn := g.dial(t)
		for i := range 20 {
			id := newID()
			g.opened(id)
			g.expect(t, conn.get(t, "X-Session-ID: "+id), "placed")
			query, body := "?session_id="+id, strings.Repeat("x", []int{1, 30, 60_000, 200_000}[i%4])
			if i%2 == 1 {
				query, body = "", `{"user":"`+id+`","p":"`+body[:min(len(body), 50_000)]+`"}`
			}
			acknowledged(t, conn.send(t, fmt.Sprintf("POST /finish_session%s HTTP/1.1\r\nHost: llm\r\nContent-Type: application/json\r\n"+
				"Content-Length: %d\r\n\r\n%s", query, len(body), body)), id)
			if t.Failed() {
				t.Fatalf("release %d", i)
			}
			if len(body) > 65536 { // more than is read: answered early
				conn = g.dial(t)
			}
		}
		g.waitOpen(t, 0, 0, 0)
		g.nothingLeaks(t)
	})
}

// proxy-wasm/proxy-wasm-cpp-host#143: without allow_on_headers_stop_iteration Envoy
// shows no body to a request that waits. A few requests are slow, none hangs, none
// is refused, whatever its size.
func TestBodiesWithoutTheFlag(t *testing.T) {
	each(t, noFlag, func(t *testing.T, g *gateway) {
		before, mark := g.quietCounts(t), g.envoy.Log.Len()
		id := newID()
		g.opened(id)
		home := g.turn(t, id, "placed").Served
		bodies := []string{sized(10, id, false), sized(900<<10, id, false), sized(1100<<10, id, true), sized(20<<20, id, false)}
		for i := range 40 {
			body := bodies[i%len(bodies)]
			r, err := newClient(g.addr).send(t.Context(), http.MethodPost, chatPath, text(body), "Content-Type", "application/json")
			if err != nil {
				t.Fatalf("request %d of %d bytes: %v", i, len(body), err)
			}
			g.expect(t, r, "keyless")
			if n := g.bodyBytes(r.Served); n != int64(len(body)) {
				t.Errorf("%d bytes arrived of %d", n, len(body))
			}
		}
		// A release with a body is answered all the same, and headers count as ever.
		for range 4 {
			done := newID()
			g.opened(done)
			g.turn(t, done, "placed")
			acknowledged(t, g.finish(t, http.MethodPost, "?session_id="+done, bytes.NewReader(make([]byte, 1000))), done)
		}
		if r := g.turn(t, id, "pinned"); r.Served != home {
			t.Errorf("the session moved to %s", r.Served)
		}
		now := g.quietCounts(t)
		const workers, enough = 2, 3
		if late := now[statBodyLate] - before[statBodyLate]; late == 0 || late > workers*enough {
			t.Errorf("%d requests waited in vain, want 1 to %d", late, workers*enough)
		}
		if withheld := now[statBodyWithheld] - before[statBodyWithheld]; withheld == 0 {
			t.Error("nothing counted as withheld")
		}
		if !strings.Contains(g.envoy.Log.Since(mark), "allow_on_headers_stop_iteration: true") {
			t.Error("no warning names the flag")
		}
	})
}

// A buffer that is smaller than what is read of a body: what has come by then
// counts, and it is no 413.
func TestBodiesThatOutgrowTheBuffer(t *testing.T) {
	each(t, tightBuffers, func(t *testing.T, g *gateway) {
		before := g.quietCounts(t)
		id := newID()
		g.opened(id)
		g.chatIs(t, id, "placed")
		for _, size := range []int{20 << 10, 100 << 10, 900 << 10, 3 << 20} {
			for _, behind := range []bool{false, true} {
				want := "pinned"
				if behind && size > 32<<10 {
					want = "keyless"
				}
				r := g.chat(t, text(sized(size, id, behind)))
				if g.expect(t, r, want); t.Failed() {
					t.Errorf("%d bytes, id behind %v: status %d", size, behind, r.Status)
				}
			}
		}
		if late := g.quietCounts(t)[statBodyLate] - before[statBodyLate]; late != 3 {
			t.Errorf("%d requests were late, want the 3 whose id is behind the buffer", late)
		}
	})
}
