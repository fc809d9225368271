package hostsim

import (
	"bytes"
	"context"
	"strings"
	"testing"
)

// A redacted recording holds none of the secrets, in headers or wherever the plugin passes them on, and still replays.
func TestRedactedRecordingReplays(t *testing.T) {
	const script = `
		request_headers get 0 Authorization
		request_headers pairs 0
		request_headers prop request$headers$authorization
		request_headers replace 0 cookie sid=own
		request_headers setpairs 0 :method=GET :path=/ :authority=a authorization=mine
		response_headers pairs 2`
	secrets := []string{"s3cr3t-T0ken", "abcdefgh1", "set-by-upstream", `"value":"sid=own"`, `["authorization","mine"]`}
	var out bytes.Buffer
	c := Config{Wasm: guest(t, "probe"), PluginConfig: []byte(script), Recorder: NewRecorder(&out, RecordOptions{Redact: []string{"Authorization", "cookie", "set-cookie"}})}
	h, err := New(context.Background(), c)
	ok(t, err)
	for range 3 {
		s := h.Worker(0).NewStream()
		_, err := s.RequestHeaders(Headers{{":method", "GET"}, {":path", "/?token=s3cr3t-T0ken"}, {":authority", "a"}, {"authorization", "Bearer s3cr3t-T0ken"},
			{"cookie", "sid=abcdefgh1; theme=dark"}, {"x-kept", "kept value"}}, false)
		ok(t, err)
		_, err = s.RequestBody([]byte("token=s3cr3t-T0ken"), true)
		ok(t, err)
		_, err = s.ResponseHeaders(Headers{{":status", "200"}, {"set-cookie", "sid=set-by-upstream; HttpOnly"}}, true)
		ok(t, err)
		ok(t, s.End(EndNormal))
	}
	ok(t, h.Close())
	recording := out.String()
	_, traffic, _ := strings.Cut(recording, `"event"`) // the script itself stands in the header
	for _, secret := range secrets {
		for line := range strings.SplitSeq(traffic, "\n") {
			if strings.Contains(line, secret) {
				t.Errorf("%s in %s", secret, line)
			}
		}
	}
	for _, kept := range []string{"Bearer ", "sid=", "; theme=", "kept value", `"redacted":["Authorization","cookie","set-cookie"]`} {
		if !strings.Contains(recording, kept) {
			t.Errorf("%q is gone", kept)
		}
	}
	report, err := Check(context.Background(), c.Wasm, &out)
	if err != nil {
		t.Fatal(err)
	}
	if report.Memories != 0 || report.VMs != 3 || len(report.Redacted) != 3 {
		t.Errorf("%+v", report)
	}
}

// A stand-in has its value's length and shape, is the same for the same value, and tells nothing of it to another recording.
// A value that is too short to be looked for elsewhere is hidden where a property answers it; a stand-in is no secret.
func TestShortSecretsAndStandIns(t *testing.T) {
	var out bytes.Buffer
	p := newProbe(t, "request_headers prop request$headers$x-pin", func(c *Config) {
		c.Recorder = NewRecorder(&out, RecordOptions{Redact: []string{"x-pin"}})
	})
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(append(get.Clone(), [2]string{"x-pin", "q7q7q7"}), true)
	ok(t, err)
	ok(t, s.End(EndNormal))
	ok(t, p.Host.Close())
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, "proxy_get_property") && strings.Contains(line, "q7q7q7") {
			t.Error(line)
		}
	}
	r := newRedaction([]string{"a"})
	once := r.standIn([]byte("0123456789"))
	r.standIn(once)
	if got := r.text(once); !bytes.Equal(got, once) {
		t.Errorf("%q became %q", once, got)
	}
}

func TestStandIn(t *testing.T) {
	r, other := newRedaction([]string{"a"}), newRedaction([]string{"a"})
	const value = "Bearer aB3-xyz.QQQQQQ; k=longvalue01=="
	first := string(r.standIn([]byte(value)))
	if again := string(r.standIn([]byte(value))); again != first {
		t.Errorf("%q, then %q", first, again)
	}
	if first == string(other.standIn([]byte(value))) {
		t.Error("two recordings have the same stand-in")
	}
	if len(first) != len(value) || !strings.HasPrefix(first, "Bearer ") || !strings.Contains(first, "; k=") || !strings.HasSuffix(first, "==") {
		t.Errorf("%q for %q", first, value)
	}
	if got := string(r.text([]byte("see longvalue01 here"))); strings.Contains(got, "longvalue01") || !strings.HasPrefix(got, "see ") {
		t.Errorf("%q", got)
	}
	var none *redaction
	if got := none.text([]byte(value)); string(got) != value {
		t.Errorf("%q without redaction", got)
	}
}

// What a recorder remembers is bounded.
func TestSecretsAreBounded(t *testing.T) {
	r := newRedaction([]string{"a"})
	for i := range 3 * maxSecrets {
		r.standIn([]byte("secret-number-" + strings.Repeat("x", i%7) + string(rune('a'+i%26)) + strings.Repeat("y", i)))
	}
	if n := len(r.known); n != maxSecrets {
		t.Errorf("%d", n)
	}
}
