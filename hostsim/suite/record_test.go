package suite

import (
	"bytes"
	"context"
	"os"
	"regexp"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// What a suite records is replayed call by call, all its hosts.
func TestRecordings(t *testing.T) {
	var out bytes.Buffer
	o := Options{Recorder: hostsim.NewRecorder(&out, hostsim.RecordOptions{}), Only: regexp.MustCompile("whole|asks|gRPC|two streams|refused")}
	results := execute(t, load(t, "passes.yaml"), o)
	wasm, err := os.ReadFile(probe)
	if err != nil {
		t.Fatal(err)
	}
	report, err := hostsim.Check(context.Background(), wasm, &out)
	if err != nil {
		t.Fatal(err)
	}
	if report.Recordings != len(results) || len(results) != 5 || report.Callbacks < 100 {
		t.Errorf("%d results, report %+v", len(results), report)
	}
}

func TestCoverage(t *testing.T) {
	var c hostsim.Coverage
	execute(t, parse(t, "plugin: {config: request_headers get 0 x-none}\ncases: [{name: a, request: {}}, {name: b, request: {}}]"), Options{Coverage: &c})
	found := 0
	for _, l := range c.Callbacks {
		if l.Name == "proxy_on_request_headers" && l.Calls == 2 || l.Name == "proxy_on_tick" && l.Calls == 0 {
			found++
		}
	}
	for _, l := range c.HostCalls {
		if l.Name == "env.proxy_get_header_map_value" && l.Calls == 2 && l.Answers[0] == (hostsim.AnswerCoverage{Status: "NOT_FOUND", Calls: 2}) {
			found++
		}
	}
	if found != 3 {
		t.Errorf("%+v", c)
	}
}
