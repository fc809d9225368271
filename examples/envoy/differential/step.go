package differential

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// actors are the first words of steps.
var actors = map[string]bool{"start": true, "client": true, "upstream": true, "other": true, "time": true}

// act is a step taken apart:
//
//	start                              what the worker's virtual machine heard before the first request
//	client headers METHOD PATH [N=V]   begins a request on a connection of its own; with the word end it has no body
//	client data TEXT                   a chunk; TEXT*N is TEXT N times; % is a space
//	client end                         the end of the body
//	client trailers N=V ...            the same, with trailers
//	client close | client reset        closes the connection, resets it
//	upstream headers STATUS [N=V]      and so on: the answer of the cluster {upstream}
//	other headers STATUS [N=V]         the same for the cluster {other}
//	time DURATION                      time passes
type act struct {
	actor, verb string
	method      string // or status
	path        string
	headers     [][2]string
	end         bool
	data        []byte
	span        time.Duration
}

func parseAct(do string) (a act, err error) {
	words := strings.Fields(do)
	a.actor = words[0]
	switch {
	case a.actor == "start" && len(words) == 1:
		return a, nil
	case a.actor == "time" && len(words) == 2:
		a.span, err = time.ParseDuration(words[1])
		return a, err
	case len(words) < 2:
		return a, fmt.Errorf("%w: step %q", ErrFormat, do)
	}
	a.verb = words[1]
	rest := words[2:]
	switch {
	case a.verb == "headers" && a.actor == "client" && len(rest) >= 2:
		a.method, a.path, rest = rest[0], rest[1], rest[2:]
	case a.verb == "headers" && a.actor != "client" && len(rest) >= 1:
		a.method, rest = rest[0], rest[1:]
	case a.verb == "data" && len(rest) == 1:
		a.data, err = dataOf(rest[0])
		return a, err
	case a.verb == "trailers":
	case (a.verb == "end" || a.verb == "close" || a.verb == "reset") && len(rest) == 0:
	default:
		return a, fmt.Errorf("%w: step %q", ErrFormat, do)
	}
	for _, w := range rest {
		if w == "end" {
			a.end = true
			continue
		}
		name, value, _ := strings.Cut(w, "=")
		a.headers = append(a.headers, [2]string{name, strings.ReplaceAll(value, "%", " ")})
	}
	return a, nil
}

func dataOf(text string) ([]byte, error) {
	text, times, repeated := strings.Cut(text, "*")
	n := 1
	if repeated {
		var err error
		if n, err = strconv.Atoi(times); err != nil {
			return nil, fmt.Errorf("%w: data %q", ErrFormat, text+"*"+times)
		}
	}
	return []byte(strings.Repeat(strings.ReplaceAll(text, "%", " "), n)), nil
}

// hiddenHeaders are left out of recordings: framing of HTTP/1.1, times, and what the gateway adds for itself.
var hiddenHeaders = map[string]bool{"transfer-encoding": true, "connection": true, "date": true, "host": true,
	"x-envoy-internal": true, "x-envoy-expected-rq-timeout-ms": true, "x-request-id": true, "x-forwarded-proto": true, ":scheme": true, ":authority": true}

// showHeaders shows a message's head in one line.
func showHeaders(start string, headers [][2]string) string {
	var b strings.Builder
	b.WriteString(start)
	for _, kv := range headers {
		if !hiddenHeaders[kv[0]] {
			b.WriteString(" " + kv[0] + "=" + strings.ReplaceAll(kv[1], " ", "%"))
		}
	}
	return b.String()
}
