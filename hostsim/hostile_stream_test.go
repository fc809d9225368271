package hostsim

import (
	"strings"
	"testing"
	"time"
)

// What a plugin asks for while its stream ends comes too late: no callback follows delete.
func TestCallsWhileAStreamEnds(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{"log reply 418 late", "reply 418 late = 0"},
		{"log continue 0", "continue 0 = 0"},
		{"log close 0", "close 0 = 0"},
		{"done reply 418 late", "reply 418 late = 0"},
		{"done return 0", ""}, // a stream's done is not waited for
		{"delete continue 1", "continue 1 = 0"},
		{"delete reply 418 late", "reply 418 late = 0"},
		{"delete finish", "finish = 1"},
	} {
		p := newProbe(t, "request_headers return 1\n"+tt.script)
		s := p.Worker(0).NewStream()
		_, err := s.RequestHeaders(get, false)
		ok(t, err)
		_, err = s.RequestBody([]byte("held"), true)
		ok(t, err)
		p.heard()
		ok(t, s.End(EndClientGone))
		ok(t, s.End(EndClientGone))
		want := ""
		for _, name := range []string{"log", "done", "delete"} {
			want += "> " + name + " 2\n"
			if tt.want != "" && tt.script[:len(name)] == name {
				want += tt.want + "\n"
			}
		}
		if strings.Contains(tt.script, " reply ") || strings.Contains(tt.script, " close ") {
			want += "hostsim: a local reply or proxy_close_stream at the end of a stream: Envoy calls proxy_on_log again and may die\n"
		}
		p.expect(want)
		if r := s.LocalReply(); r != nil {
			t.Errorf("%s: reply %+v", tt.script, r)
		}
	}
}

// proxy_done counts once, and only for a plugin context whose done said no.
func TestDoneTwice(t *testing.T) {
	p := newProbe(t, "done return 0")
	ok(t, p.Reconfigure([]byte(`
		configure tickevery 10
		tick effective 1
		tick finish
		tick finish`)))
	p.Drain()
	p.heard()
	p.Advance(20 * time.Millisecond)
	p.expect(`
		> tick 2
		effective 1 = 0
		finish = 0
		finish = 1
		> delete 1
		> tick 2
		effective 1 = 2
		finish = 1
		finish = 1`)
}

// Contexts that are gone, or never were, cannot be taken up.
func TestEffectiveContextOfADeadStream(t *testing.T) {
	p := newProbe(t, `
		request_headers effective 2
		request_headers get 0 :path
		request_headers effective 4294967295
		request_headers effective 0
		request_headers effective 1
		request_headers get 0 :path`)
	s := p.Worker(0).NewStream() // context 2
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	ok(t, s.End(EndClientGone))
	p.heard()
	p.pass() // context 3
	p.results(`
		effective 2 = 2
		get 0 :path = 0 /a?b=c
		effective 4294967295 = 2
		effective 0 = 0
		effective 1 = 0
		get 0 :path = 2`)
}
