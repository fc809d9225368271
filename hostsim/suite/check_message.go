package suite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/exchange"
)

// seen is a message as it went on.
type seen struct {
	sent, headers hostsim.Headers
	body          []byte
	trailers      hostsim.Headers
}

func (x *stream) request() seen {
	m := x.Messages[exchange.Request]
	return seen{m.Sent, m.Headers, m.Body, m.Trailers}
}

func (x *stream) response() seen {
	if x.Local != nil {
		return seen{nil, x.Local.Headers, x.Local.Body, nil}
	}
	m := x.Messages[exchange.Response]
	return seen{m.Sent, m.Headers, m.Body, m.Trailers}
}

// checkMessage holds what went on to what is expected of it.
func (a *attempt) checkMessage(e *messageExpectation, what string, got seen) {
	switch {
	case e == nil:
		return
	case e.absent:
		if got.headers != nil {
			a.fail(e.place, diff("(absent)", headerText(got.headers)), "%s", what)
		}
		return
	case got.headers == nil:
		a.fail(e.place, "", "no %s went on", what)
		return
	}
	for _, h := range e.pseudo {
		a.compare(h.what, got.headers.Values(h.key), "%s %s", what, strings.TrimPrefix(h.key, ":"))
	}
	for _, h := range e.headers {
		a.compare(h.what, got.headers.Values(h.key), "%s header %s", what, h.key)
	}
	if e.changed != nil {
		a.checkChanges(e, what, got)
	}
	if e.body != nil {
		a.compare(e.body, bodyValues(got.body), "%s body", what)
	}
	for _, h := range e.trailers {
		a.compare(h.what, got.trailers.Values(h.key), "%s trailer %s", what, h.key)
	}
}

// checkChanges holds the plugin to having changed exactly the headers that are listed.
func (a *attempt) checkChanges(e *messageExpectation, what string, got seen) {
	if got.sent == nil {
		a.fail(*e.changed, "", "changes of a %s that was not sent by a client or upstream", what)
		return
	}
	listed := map[string]bool{}
	for _, h := range e.changes {
		listed[h.key] = true
		a.compare(h.what, got.headers.Values(h.key), "%s header %s", what, h.key)
		if slices.Equal(got.sent.Values(h.key), got.headers.Values(h.key)) {
			a.fail(h.what.place, "", "%s header %s is as it was sent", what, h.key)
		}
	}
	for _, kv := range slices.Concat(got.sent, got.headers) {
		name := strings.ToLower(kv[0])
		before, after := got.sent.Values(name), got.headers.Values(name)
		if !listed[name] && !slices.Equal(before, after) {
			listed[name] = true
			none := &matcher{}
			a.fail(*e.changed, diff(none.seen(before), none.seen(after)), "%s header %s was changed too", what, name)
		}
	}
}

func headerText(h hostsim.Headers) string {
	var b strings.Builder
	for _, kv := range h {
		fmt.Fprintf(&b, "%s: %s\n", kv[0], kv[1])
	}
	return strings.TrimSuffix(b.String(), "\n")
}
