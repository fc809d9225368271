package suite

import (
	"io"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// A case cannot tell whether its plugin was set back or is new: one that is recorded is always new.
func TestSetBackIsLikeNew(t *testing.T) {
	text := `
plugin:
  config: |
    configure tickevery 1000
    configure mdef 0 requests
    configure httpcall auth 500 x :method=GET :path=/ :authority=a
    http_call_response get 6 :status
    request_headers minc requests 1
    request_headers mget requests
    request_headers sdadd count
    request_headers sdget count
    request_headers random
    request_headers hostnow
    request_headers httpcall auth 500 x :method=GET :path=/ :authority=a
    tick log 2 ticked
gateway: {workers: 2, failure_policy: fail_reload, clusters: {auth: [{status: 201, times: 6, after: 5ms}, {status: 202, after: 5ms}]}}
cases:
  - {name: one, request: {}, expect: {metrics: {requests: 1}, shared_data: {count: "1"}}}
  - {name: two, steps: [{advance: 3s}, {request: {}, worker: 1}, {request: {}}]}
  - {name: crash, faults: [{at: proxy_on_request_headers, trap: true}], request: {}, expect: {crash: true}}
  - {name: after a crash, request: {}, expect: {metrics: {requests: 1}}}
  - {name: reconfigure, steps: [{reconfigure: ""}, {request: {}}]}
  - {name: after a configuration, request: {}, expect: {metrics: {requests: 1}}}
  - {name: left open, steps: [{stream: a, request: {more: true}}]}
  - {name: after a stream, request: {}, expect: {metrics: {requests: 1}, shared_data: {count: "1"}}}
  - {name: fails, request: {}, expect: {metrics: {requests: 7}}}
  - {name: after a failure, steps: [{request: {}, expect: {metrics: {requests: 1}}}, {advance: 1s}]}
`
	s := parse(t, text)
	logs := func(o Options) (out string) {
		for _, r := range execute(t, s, o) {
			out += r.Name + "\n"
			if r.OK == (r.Name == "fails") {
				t.Errorf("%s: %v", r.Name, r.Problems)
			}
			for _, e := range r.Log {
				out += e.Time.String() + " " + entryText(e) + "\n"
			}
		}
		return out
	}
	back, fresh := logs(Options{}), logs(Options{Recorder: hostsim.NewRecorder(io.Discard, hostsim.RecordOptions{})})
	if back != fresh {
		t.Errorf("new ones (-) and those set back (+) differ:\n%s", diff(fresh, back))
	}
}

// A start that crashes is told in one line; the stack stands in the log.
func TestCrashAtTheStartIsOneLine(t *testing.T) {
	s := parse(t, "cases: [{name: a, gateway: {faults: [{at: env.proxy_log, trap: true}]}, request: {}}]")
	r := execute(t, s, Options{})[0]
	if len(r.Problems) != 1 || !strings.HasSuffix(r.Problems[0].Text, "a fault was injected here") {
		t.Errorf("%v", r.Problems)
	}
	if last := r.Log[len(r.Log)-1].Message; !strings.Contains(last, "\n\tin ") {
		t.Errorf("no stack in %q", last)
	}
}
