package suite

import (
	"strings"
	"testing"
)

// A plugin that calls out again upon each answer, and answers that take no time: the case ends and says why.
func TestPluginThatNeverComesToRest(t *testing.T) {
	s := parse(t, `
plugin:
  wasm: probe
  config: |
    request_headers httpcall auth 1000 ~ :method=GET :path=/ :authority=auth
    request_headers return 1
    http_call_response httpcall auth 1000 ~ :method=GET :path=/ :authority=auth
gateway:
  log_level: critical
  clusters: {auth: [{status: 200}]}
cases:
  - name: endless
    request: {}
    expect: {outcome: paused}
`)
	r := execute(t, s, Options{})[0]
	if r.OK || len(r.Problems) != 1 || !strings.Contains(r.Problems[0].String(), "the plugin never comes to rest: more than 10000 events at one moment") {
		t.Errorf("problems %v", r.Problems)
	}
}
