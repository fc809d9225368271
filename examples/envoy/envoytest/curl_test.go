package envoytest

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestCurlStandIn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(404)
		}
		w.Header().Set("X-Pinwheel-Reason", "placed")
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s %s%s", r.Method, r.Header.Get("X-Session-ID"), body)
	}))
	defer server.Close()
	cases := []struct {
		args []string
		code int
		want []string
	}{
		{[]string{"-s", server.URL, "-H", "X-Session-ID: a"}, 0, []string{"GET a"}},
		{[]string{"-si", server.URL}, 0, []string{"HTTP/1.1 200 OK\r\n", "x-pinwheel-reason: placed\r\n", "\r\nGET "}},
		{[]string{"-s", "-X", "POST", server.URL}, 0, []string{"POST "}},
		{[]string{"-s", strings.TrimPrefix(server.URL, "http://"), "-d", "{}"}, 0, []string{"POST {}"}},
		{[]string{"-sf", server.URL + "/missing"}, 22, nil},
		{[]string{server.URL, server.URL}, 2, []string{"unknown argument"}},
		{[]string{"-o", server.URL}, 2, []string{`unknown argument "-o"`}},
	}
	for _, c := range cases {
		var out bytes.Buffer
		if code := curl(c.args, &out, &out); code != c.code {
			t.Errorf("curl %q: exit code %d, want %d", c.args, code, c.code)
		}
		for _, w := range c.want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("curl %q printed %q, want %q in it", c.args, out.String(), w)
			}
		}
	}
}
