package hostsim

import (
	"strings"
	"testing"
)

// What Envoy dies of, or does twice, is logged by name. Seen on Envoy 1.36.4 and 1.40.0.
func TestMisuseIsLogged(t *testing.T) {
	for _, tt := range []struct{ script, want string }{
		{"log reply 502 late", "hostsim: a local reply or proxy_close_stream at the end"},
		{"log close 0", "hostsim: a local reply or proxy_close_stream at the end"},
		{"done reply 502 late", "hostsim: a local reply or proxy_close_stream at the end"},
		{"request_headers continue 0", "hostsim: proxy_continue_stream in a headers callback that does not pause"},
		{"request_body nth 1 continue 0", ""},
	} {
		p := newProbe(t, tt.script)
		s := p.pass()
		got := p.heard()
		if tt.want == "" && strings.Contains(got, "hostsim: ") || !strings.Contains(got, tt.want) {
			t.Errorf("%s: heard\n%s", tt.script, got)
		}
		if s.Worker().Err() != nil {
			t.Errorf("%s: %v", tt.script, s.Worker().Err())
		}
	}
}

func TestContinueOfAResponseThatHasNotCome(t *testing.T) {
	p := newProbe(t, "request_headers continue 1")
	step, err := p.Worker(0).NewStream().RequestHeaders(get, true)
	ok(t, err)
	if got := p.heard(); step.Flow != Reset || !strings.Contains(got, "hostsim: proxy_continue_stream of a response that has not come") {
		t.Errorf("flow %v, heard\n%s", step.Flow, got)
	}
}

// What a callback asks for happens before its answer counts: a pause after a continue is for good. Seen as above.
func TestAPauseAfterAContinueStays(t *testing.T) {
	p := newProbe(t, "request_headers continue 0\nrequest_headers return 1")
	s := p.Worker(0).NewStream()
	step, err := s.RequestHeaders(get, false)
	ok(t, err)
	if !step.Headers || step.Flow != Wait {
		t.Errorf("headers: %+v", step)
	}
	if step, err = s.RequestBody([]byte("x"), true); err != nil || step.Flow != Wait || len(step.Data) > 0 {
		t.Errorf("body: %+v, %v", step, err)
	}
}
