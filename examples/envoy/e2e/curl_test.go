package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// actAsCurl does curl's work when this binary is called by that name, and
// reports whether it was.
func actAsCurl() bool {
	if filepath.Base(os.Args[0]) != "curl" {
		return false
	}
	os.Exit(curl(os.Args[1:], os.Stdout))
	return true
}

// curl understands as much of curl's command line as the README uses, and
// refuses the rest. It returns the exit code.
func curl(args []string, out io.Writer) int {
	method, url, showHeader, failOnStatus := http.MethodGet, "", false, false
	header := http.Header{}
	for i := 0; i < len(args); i++ {
		switch a := args[i]; {
		case (a == "-X" || a == "-H") && i+1 < len(args):
			i++
			if a == "-X" {
				method = args[i]
				continue
			}
			name, value, _ := strings.Cut(args[i], ":")
			header.Add(name, strings.TrimSpace(value))
		case strings.HasPrefix(a, "-") && strings.Trim(a, "-sif") == "":
			showHeader = showHeader || strings.Contains(a, "i")
			failOnStatus = failOnStatus || strings.Contains(a, "f")
		case strings.HasPrefix(a, "http://"):
			url = a
		default:
			fmt.Fprintf(os.Stderr, "curl stand-in: unknown argument %q\n", a)
			return 2
		}
	}
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		return 3
	}
	req.Header = header
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return 7
	}
	defer res.Body.Close()
	if failOnStatus && res.StatusCode >= 400 {
		return 22
	}
	if showHeader {
		fmt.Fprintf(out, "HTTP/1.1 %s\r\n", res.Status)
		for name, values := range res.Header {
			for _, v := range values {
				fmt.Fprintf(out, "%s: %s\r\n", strings.ToLower(name), v)
			}
		}
		fmt.Fprint(out, "\r\n")
	}
	_, _ = io.Copy(out, res.Body)
	return 0
}

func TestCurlStandIn(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/missing" {
			w.WriteHeader(404)
		}
		w.Header().Set("X-Pinwheel-Reason", "placed")
		fmt.Fprintf(w, "%s %s", r.Method, r.Header.Get("X-Session-ID"))
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
		{[]string{"-sf", server.URL + "/missing"}, 22, nil},
		{[]string{"-o", server.URL}, 2, nil},
	}
	for _, c := range cases {
		var out bytes.Buffer
		if code := curl(c.args, &out); code != c.code {
			t.Errorf("curl %q: exit code %d, want %d", c.args, code, c.code)
		}
		for _, w := range c.want {
			if !strings.Contains(out.String(), w) {
				t.Errorf("curl %q printed %q, want %q in it", c.args, out.String(), w)
			}
		}
	}
}
