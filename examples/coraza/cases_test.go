//go:build coraza

package coraza

import "github.com/pinwheel-proxy/pinwheel/hostsim"

// ruleCase is a request, what envoy.yaml's upstream answers to it, and what the client
// must get. Both gateways run all of them.
type ruleCase struct {
	rule                     string
	method, host, path, body string
	contentType, agent       string
	debug                    bool // upstream's answer has the header x-debug
	upstream                 string
	status                   int
	answer                   string
}

const (
	fine = "fine\n"
	key  = "BEGIN PRIVATE KEY\n"
	form = "application/x-www-form-urlencoded"
)

// Coraza blanks a body that it objects to when the headers are gone already.
var blanked = string(make([]byte, len(key)))

var ruleCases = []ruleCase{
	{rule: "none", path: "/hello", status: 200, answer: fine},
	{rule: "uri", path: "/admin", status: 403},
	{rule: "uri, transformed", path: "/ADMIN", status: 403},
	{rule: "query argument", path: "/item?id=1%3Bdrop", status: 400},
	{rule: "query argument, harmless", path: "/item?id=17", status: 200, answer: fine},
	{rule: "header", path: "/", agent: "SQLMap/1.8", status: 403},
	{rule: "method", method: "DELETE", path: "/item", status: 405},
	{rule: "form", method: "POST", path: "/", contentType: form, body: "comment=%3CScript%3E", status: 403},
	{rule: "form, harmless", method: "POST", path: "/", contentType: form, body: "comment=hello", status: 200, answer: fine},
	{rule: "JSON", method: "POST", path: "/", contentType: "application/json", body: `{"user":{"role":"root"}}`, status: 403},
	{rule: "JSON, harmless", method: "POST", path: "/", contentType: "application/json", body: `{"user":{"role":"me"}}`, status: 200, answer: fine},
	{rule: "raw body", method: "POST", path: "/", contentType: form, body: "f=/etc/passwd", status: 403},
	{rule: "response header", path: "/debug", debug: true, upstream: fine, status: 502},
	{rule: "response body", path: "/key", upstream: key, status: 200, answer: blanked},
	{rule: "response body, other type of request", method: "POST", path: "/key", contentType: "text/x", body: "x", upstream: key, status: 200, answer: blanked},
	{rule: "core rule set: SQL injection", host: "crs.example.com", path: "/?id=1%27%20OR%20%271%27=%271", status: 403},
	{rule: "core rule set: script in a form", host: "crs.example.com", method: "POST", path: "/", contentType: form, body: "c=%3Cscript%3Ealert(1)%3C/script%3E", status: 403},
	{rule: "core rule set: path traversal", host: "crs.example.com", path: "/?f=../../../etc/passwd", status: 403},
	{rule: "core rule set: harmless", host: "crs.example.com", path: "/?id=1", status: 200, answer: fine},
}

// filled has what a case leaves out.
func (c ruleCase) filled() ruleCase {
	set := func(field *string, value string) {
		if *field == "" {
			*field = value
		}
	}
	set(&c.method, "GET")
	set(&c.host, "example.com")
	set(&c.agent, "Mozilla/5.0")
	set(&c.upstream, fine)
	return c
}

func (c ruleCase) headers() hostsim.Headers {
	h := hostsim.Headers{{"user-agent", c.agent}, {"accept", "*/*"}}
	if c.contentType != "" {
		h = append(h, [2]string{"content-type", c.contentType})
	}
	return h
}
