package e2e

import (
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// Many sessions in one HTTP/2 connection are as separate as in many connections.
func TestSessionsOverHTTP2(t *testing.T) {
	t.Parallel()
	each(t, userFile, func(t *testing.T, g *gateway) {
		protocols := new(http.Protocols)
		protocols.SetUnencryptedHTTP2(true)
		transport := &http.Transport{Protocols: protocols}
		defer transport.CloseIdleConnections()
		http1 := g.client
		g.client = &client{base: http1.base, http: &http.Client{Transport: transport}}
		defer func() { g.client = http1 }()

		ids := newIDs(30)
		homes := g.turns(t, ids, "placed")
		for range 3 {
			for id, addr := range g.turns(t, ids, "pinned") {
				if addr != homes[id] {
					g.complain(t, "session %s moved from %s to %s", id, homes[id], addr)
				}
			}
		}
		g.waitOpen(t, 10, 10, 10)
		together(len(ids), func(i int) {
			body := strings.NewReader(strings.Repeat("x", 300<<10*(i%2)))
			acknowledged(t, g.finish(t, http.MethodPost, "?session_id="+url.QueryEscape(ids[i]), body), ids[i])
		})
		g.waitOpen(t, 0, 0, 0)
		g.nothingLeaks(t)
	})
}
