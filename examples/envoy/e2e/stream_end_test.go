package e2e

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// stream opens one streaming turn and returns its body, of which nothing has
// been read.
func (g *gateway) stream(t *testing.T, ctx context.Context, id, do string) *http.Response {
	t.Helper()
	g.opened(id)
	res, err := g.client.open(ctx, http.MethodPost, chatPath, strings.NewReader("{}"), "X-Session-ID", id, envoytest.DoHeader, do)
	if err != nil {
		t.Errorf("stream of %s: %v", id, err)
		return nil
	}
	return res
}

// stillPinned checks that a turn of every session goes to its home, and that
// the gauges count exactly these sessions.
func (g *gateway) stillPinned(t *testing.T, homes map[string]string) {
	t.Helper()
	g.waitOpenTotal(t, uint64(len(homes)))
	g.stay(t, homes)
	g.waitInflight(t, 0)
	g.waitOpenTotal(t, uint64(len(homes)))
}

// stay sends one turn of every session and expects it at its home.
func (g *gateway) stay(t *testing.T, homes map[string]string) {
	t.Helper()
	for id, addr := range g.turns(t, keys(homes), "pinned") {
		if addr != homes[id] {
			t.Errorf("session %s moved from %s to %s", id, homes[id], addr)
		}
	}
}

func TestStreamsArriveWholeAndAreCounted(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		const streams, chunks = 30, 50
		ids := newIDs(streams)
		bodies := make([]*http.Response, streams)
		homes := map[string]string{}
		for i, id := range ids {
			// hold keeps all of them open until every one has been seen in flight.
			res := g.stream(t, t.Context(), id, fmt.Sprintf("chunks=%d&hold=1", chunks))
			if res == nil {
				t.FailNow()
			}
			defer res.Body.Close()
			bodies[i], homes[id] = res, res.Header.Get(envoytest.ServedByHeader)
		}
		g.waitInflight(t, streams)
		for i, res := range bodies {
			lines := bufio.NewScanner(res.Body)
			// All chunks come through while the stream is still open.
			for n := 0; n < chunks; {
				if !lines.Scan() {
					t.Fatalf("stream %d ended after %d of %d chunks: %v", i, n, chunks, lines.Err())
				}
				if line := lines.Text(); line != "" {
					if want := fmt.Sprintf("data: %d", n); line != want {
						t.Fatalf("stream %d: chunk %q, want %q", i, line, want)
					}
					n++
				}
			}
		}
		for _, r := range g.replicas {
			r.Release()
		}
		for i, res := range bodies {
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				t.Errorf("stream %d: %v", i, err)
			}
		}
		g.waitInflight(t, 0)
		g.stillPinned(t, homes)
	})
}

func TestClientLeaves(t *testing.T) {
	t.Parallel()
	cases := []struct{ name, do string }{
		{"mid response", "chunks=2&hold=1"},
		{"before the response", "delay=1h"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			each(t, userFile, func(t *testing.T, g *gateway) {
				ids := newIDs(20)
				homes := g.turns(t, ids, "placed")
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				var all sync.WaitGroup
				for _, id := range ids {
					all.Go(func() {
						res, err := g.client.open(ctx, http.MethodPost, chatPath, strings.NewReader("{}"), "X-Session-ID", id, envoytest.DoHeader, c.do)
						if err != nil {
							return // left before the response
						}
						defer res.Body.Close()
						if _, err := io.Copy(io.Discard, res.Body); err == nil {
							t.Errorf("%s: the stream ended before the client left", id)
						}
					})
				}
				g.waitInflight(t, 20)
				leave()
				all.Wait()
				g.waitInflight(t, 0)
				g.stillPinned(t, homes)
			})
		})
	}
}

func TestUpstreamResets(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, do string
		sessions int // each fails once, on its replica or on all
		check    func(reply, error) bool
	}{
		{"mid response", "chunks=10&reset=3", 9, func(r reply, err error) bool { return err != nil && r.Status == 200 }},
		{"before the response", "reset=0", 2, func(r reply, err error) bool { return err == nil && r.Status == 503 }},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			each(t, updatable, func(t *testing.T, g *gateway) {
				homes := g.turns(t, newIDs(c.sessions), "placed")
				ids := keys(homes)
				together(len(ids), func(i int) {
					id := ids[i]
					r, err := g.client.send(t.Context(), http.MethodPost, chatPath, strings.NewReader("{}"),
						"X-Session-ID", id, envoytest.DoHeader, c.do)
					if !c.check(r, err) {
						t.Errorf("%s: status %d, %v", id, r.Status, err)
					}
					g.turn(t, id, "pinned") // one fault, or two, make no replica sick
				})
				g.waitInflight(t, 0)
				g.stillPinned(t, homes)
			})
		})
	}
}

// With every replica down clients get Envoy's 503; the books stay exact and the
// sessions of before find their replica again. The plugin's health is off: with it
// sessions rightly leave the first replica that is known to fail, until the others
// are too.
func TestNoUpstream(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		g.update(t, func(c map[string]any) { c["health"] = map[string]any{"failures": 0} })
		defer g.update(t, func(map[string]any) {})
		homes := g.turns(t, newIDs(12), "placed")
		old := keys(homes)
		for _, r := range g.replicas {
			r.Close()
		}
		var answered atomic.Int32
		fresh := newIDs(6)
		ids := append(append(append([]string(nil), old...), fresh...), "", "", "")
		together(len(ids), func(i int) {
			var header []string
			if ids[i] != "" {
				g.opened(ids[i])
				header = []string{"X-Session-ID", ids[i]}
			}
			r, err := g.client.send(t.Context(), http.MethodPost, chatPath, strings.NewReader("{}"), header...)
			if err != nil || r.Status != 503 {
				t.Errorf("%q without upstreams: status %d, %v; want 503", ids[i], r.Status, err)
				return
			}
			answered.Add(1)
		})
		if n := int(answered.Load()); n != len(ids) {
			t.Errorf("%d of %d requests answered", n, len(ids))
		}
		g.waitInflight(t, 0)
		g.waitOpenTotal(t, 18)
		for _, r := range g.replicas {
			if err := r.Reopen(); err != nil {
				t.Fatal(err)
			}
		}
		for _, id := range append(old, fresh...) {
			r, err := g.client.send(t.Context(), http.MethodPost, chatPath, nil, "X-Session-ID", id)
			if err != nil || r.Status != 200 || homes[id] != "" && r.Served != homes[id] {
				t.Errorf("%s afterwards: status %d from %s, %v; want 200 from %s", id, r.Status, r.Served, err, homes[id])
			}
		}
		g.waitInflight(t, 0)
		g.waitOpenTotal(t, 18)
	})
}

// The session's replica refuses connections: Envoy's retry takes the next of
// the plugin's list within the same request, and the session keeps its place.
func TestSpareServesWhileReplicaIsDown(t *testing.T) {
	t.Parallel()
	each(t, updatable, func(t *testing.T, g *gateway) {
		id := newID()
		home := g.turn(t, id, "placed").Served
		down := g.replicas[slices.IndexFunc(g.replicas, func(r *envoytest.Replica) bool { return r.Addr == home })]
		down.Close()
		reopen := sync.OnceFunc(func() {
			if err := down.Reopen(); err != nil {
				t.Error(err)
			}
		})
		defer reopen()
		r, err := g.client.send(t.Context(), http.MethodPost, chatPath, strings.NewReader("{}"), "X-Session-ID", id)
		if err != nil || r.Status != 200 || r.Served == home || r.Served == "" {
			t.Errorf("turn with its replica down: status %d from %q, %v; want 200 from a spare", r.Status, r.Served, err)
		}
		reopen()
		if back := g.turn(t, id, "pinned"); back.Served != home {
			t.Errorf("with its replica back the session is on %s, it lives on %s", back.Served, home)
		}
		g.waitInflight(t, 0)
		g.waitOpenTotal(t, 1)
	})
}

// Envoy ends some streams before any filter has seen a header.
func TestRequestsThatNeverReachThePlugin(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		id := newID()
		home := g.turn(t, id, "placed").Served
		for name, request := range map[string]string{
			"no host":      "GET /v1/models HTTP/1.1\r\nX-Session-ID: " + id + "\r\n\r\n",
			"no HTTP":      "GET /v1/models FTP/9\r\n\r\n",
			"huge headers": "GET /v1/models HTTP/1.1\r\nHost: llm\r\nX-Session-ID: " + long(100<<10, id) + "\r\n\r\n",
		} {
			for range 10 {
				if r := g.dial(t).send(t, request); r.Status < 400 || r.Status > 499 {
					t.Errorf("%s: status %d, want 4xx", name, r.Status)
				}
			}
		}
		g.waitInflight(t, 0)
		g.stillPinned(t, map[string]string{id: home})
	})
}
