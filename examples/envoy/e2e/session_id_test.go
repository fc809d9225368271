package e2e

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
)

// Whatever a client calls a session, it is served under the right rule, and
// the worker that met it goes on. One raw connection per case stays on one
// worker.
func TestSessionIDForms(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		tail, before := newID(), g.counts(t)
		cases := []struct {
			name    string
			lines   []string
			id      string // what gets recorded; empty if nothing does
			reasons [2]string
		}{
			{"no header", nil, "", [2]string{"keyless", "keyless"}},
			{"empty", []string{"X-Session-ID:"}, "", [2]string{"keyless", "keyless"}},
			{"blank", []string{"X-Session-ID:  \t "}, "", [2]string{"keyless", "keyless"}},
			{"plain", []string{"X-Session-ID: plain" + tail}, "plain" + tail, [2]string{"placed", "pinned"}},
			{"lower case name", []string{"x-session-id: lower" + tail}, "lower" + tail, [2]string{"placed", "pinned"}},
			{"duplicate", []string{"X-Session-ID: first" + tail, "X-Session-ID: second" + tail}, "first" + tail, [2]string{"placed", "pinned"}},
			{"256 bytes", []string{"X-Session-ID: " + long(256, tail)}, long(256, tail), [2]string{"placed", "pinned"}},
			{"257 bytes", []string{"X-Session-ID: " + long(257, tail)}, "", [2]string{"oversized", "oversized"}},
			{"8 KB", []string{"X-Session-ID: " + long(8<<10, tail)}, "", [2]string{"oversized", "oversized"}},
			{"not UTF-8", []string{"X-Session-ID: \xff\xfe\xc3\x28" + tail}, "\xff\xfe\xc3\x28" + tail, [2]string{"placed", "pinned"}},
			{"inner blanks", []string{"X-Session-ID: a b\tc" + tail}, "a b\tc" + tail, [2]string{"placed", "pinned"}},
		}
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				conn := g.dial(t)
				if c.id != "" {
					g.opened(c.id)
				}
				home := ""
				for i, reason := range c.reasons {
					r := conn.get(t, c.lines...)
					g.expect(t, r, reason)
					if i == 1 && reason == "pinned" && r.Served != home {
						t.Errorf("second turn on %s, first on %s", r.Served, home)
					}
					home = r.Served
				}
				clean := newID()
				g.opened(clean)
				g.expect(t, conn.get(t, "X-Session-ID: "+clean), "placed")
				g.expect(t, conn.get(t, "X-Session-ID: "+clean), "pinned")
			})
		}
		// Of a duplicate header the first value alone is the key, and the operator
		// can see that there was another. Only the two turns of that case have one.
		g.waitCount(t, before, statRepeatedHeader, 2)
		g.turn(t, "first"+tail, "pinned")
		g.turn(t, "second"+tail, "placed")
	})
}

// Every byte that HTTP allows beyond ASCII is a legal part of an id, also in
// the query of its release.
func TestSessionIDBytes(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		conn := g.dial(t)
		tail := newID()
		for b := 0x80; b <= 0xff; b++ {
			id := string([]byte{byte(b)}) + tail
			g.opened(id)
			home := conn.get(t, "X-Session-ID: "+id)
			g.expect(t, home, "placed")
			again := conn.get(t, "X-Session-ID: "+id)
			g.expect(t, again, "pinned")
			if again.Served != home.Served {
				t.Errorf("byte %#x: second turn on %s, first on %s", b, again.Served, home.Served)
			}
		}
		g.waitOpen(t, 42, 43, 43)
		for b := 0x80; b <= 0xff; b++ {
			id := string([]byte{byte(b)}) + tail
			r := conn.send(t, fmt.Sprintf("POST /finish_session?session_id=%s HTTP/1.1\r\nHost: llm\r\nContent-Length: 0\r\n\r\n", url.QueryEscape(id)))
			if r.Status != 200 {
				t.Errorf("byte %#x: release answered %d %s", b, r.Status, r.Body)
			}
		}
		g.waitOpen(t, 0, 0, 0)
		clean := newID()
		g.opened(clean)
		g.expect(t, conn.get(t, "X-Session-ID: "+clean), "placed")
		g.nothingLeaks(t)
	})
}

// long is an id of n bytes that ends in tail.
func long(n int, tail string) string { return strings.Repeat("x", n-len(tail)) + tail }
