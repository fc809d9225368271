package hosttest

import (
	"slices"
	"strconv"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// UpstreamFault is what goes wrong between the gateway and an upstream host. The gateway answers the client in its place,
// and as any response that answer passes the plugin.
type UpstreamFault string

const (
	// ConnectFailure is a host that takes no connection: 503, response.flags 32.
	ConnectFailure UpstreamFault = "connect_failure"
	// ResetBeforeResponse is a connection that breaks once the request has been sent: 503, response.flags 64.
	ResetBeforeResponse UpstreamFault = "reset_before_response"
	// ResetInResponse is a connection that breaks after the response's headers and the first chunk of its body. The client
	// is cut off, response.flags is 8388608, and no end of stream reaches the plugin.
	ResetInResponse UpstreamFault = "reset_in_response"
	// Timeout is a route's timeout before any response: 504, response.flags 4. Response.After says when.
	Timeout UpstreamFault = "timeout"
	// NoHost is a cluster without a host: 503, response.flags 2.
	NoHost UpstreamFault = "no_host"
)

// refusal is what the gateway answers and how it calls it. Source: seen on Envoy 1.36.4 and 1.40.0, which add the socket's
// own error to details and text.
type refusal struct {
	status        int
	details, text string
	flags         int64
}

const beforeHeaders = "upstream connect error or disconnect/reset before headers. reset reason: "

var refusals = map[UpstreamFault]refusal{
	ConnectFailure:      {503, "upstream_reset_before_response_started{remote_connection_failure}", beforeHeaders + "remote connection failure", 32},
	ResetBeforeResponse: {503, "upstream_reset_before_response_started{connection_termination}", beforeHeaders + "connection termination", 64},
	Timeout:             {504, "response_timeout", "upstream request timeout", 4},
	NoHost:              {503, "no_healthy_upstream", "no healthy upstream", 2},
}

// flagRetriesOver marks a response that would have been tried again, had there been attempts left.
const flagRetriesOver = 32768

// attemptCount is the header of Envoy's include_attempt_count_in_response.
const attemptCount = "x-envoy-attempt-count"

// defaultAttempts is the number of hosts that are asked, the first one included.
const defaultAttempts = 3

// retries reports whether an answer is worth another host under the names of Envoy's retry_on.
func (r *Request) retries(answer *Response) bool {
	on := r.RetryOn
	if on == nil {
		on = []string{"connect-failure"}
	}
	status := answer.status()
	return slices.ContainsFunc(on, func(name string) bool {
		switch name {
		case "connect-failure":
			return answer.Fault == ConnectFailure
		case "reset":
			return answer.Fault == ConnectFailure || answer.Fault == ResetBeforeResponse
		case "gateway-error":
			return answer.Fault == "" && status >= 502 && status <= 504
		case "5xx":
			return answer.Fault == ConnectFailure || answer.Fault == ResetBeforeResponse || answer.Fault == "" && status >= 500
		}
		return false
	})
}

// answer asks the hosts that the plugin named, as Request.Target says, until one of them need not be tried again.
func (x *exchangeOf) answer() *Response {
	r := x.request
	if r.Target == "" {
		x.wait(&r.Response)
		return &r.Response
	}
	limit := r.Attempts
	if limit == 0 {
		limit = defaultAttempts
	}
	answer, attempts := &Response{Fault: NoHost}, 0
	for entry := range strings.SplitSeq(x.Messages[0].Headers.Value(r.Target), ",") {
		host := strings.TrimSpace(entry)
		reply, known := r.Replicas[host]
		if !known || attempts == limit { // a host that the cluster does not have costs no attempt
			continue
		}
		attempts++
		x.property("upstream.address", []byte(host))
		x.property("upstream.request_attempt_count", hostsim.PropertyInt(int64(attempts)))
		answer = &reply
		if x.wait(answer); x.Over() || !r.retries(answer) {
			return answer.counted(attempts)
		}
	}
	if attempts > 1 && answer.Fault == "" {
		x.property("response.flags", hostsim.PropertyInt(flagRetriesOver))
	}
	return answer.counted(attempts)
}

// counted adds the number of attempts to a response.
func (r *Response) counted(attempts int) *Response {
	if attempts > 0 {
		r.Headers = append(r.Headers.Clone(), [2]string{attemptCount, strconv.Itoa(attempts)})
	}
	return r
}

// refuse turns a fault into the gateway's own answer.
func (x *exchangeOf) refuse(answer *Response) *Response {
	f, refused := refusals[answer.Fault]
	if !refused {
		return answer
	}
	x.property("response.code_details", []byte(f.details))
	x.property("response.flags", hostsim.PropertyInt(f.flags))
	return &Response{Status: f.status, Body: f.text, Headers: append(hostsim.Headers{
		{"content-length", strconv.Itoa(len(f.text))}, {"content-type", "text/plain"}}, answer.Headers...)}
}

// wait lets the time of an answer pass, with the ticks and answers to the plugin's own requests in it.
func (x *exchangeOf) wait(answer *Response) {
	if answer.After > 0 {
		x.host.Advance(answer.After)
		x.Poll()
	}
}

func (x *exchangeOf) property(path string, value []byte) { x.Stream().SetProperty(path, value) }
