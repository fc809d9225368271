package hostsim

import "testing"

func TestProperties(t *testing.T) {
	p := newProbe(t, `
		configure prop plugin_root_id
		request_headers prop request$path
		request_headers prop request$url_path
		request_headers prop request$method
		request_headers prop request$host
		request_headers prop request$headers$x-one
		request_headers prop request$headers$x-none
		request_headers prop xds$cluster_name
		request_headers prop node$id
		request_headers prop upstream$address
		request_headers propint response$code
		request_headers prop nothing
		response_headers prop upstream$address
		response_headers propint response$code
		log propint response$code
		log propint response$flags
		log prop response$code_details`, func(c *Config) {
		c.RootID = "root"
		c.Properties = map[string][]byte{"node.id": []byte("n1"), "xds.cluster_name": []byte("default")}
	})
	p.seen = 0
	s := p.Worker(0).NewStream()
	s.SetProperty("xds.cluster_name", []byte("vllm"))
	_, err := s.RequestHeaders(append(Headers{{"x-one", "1"}}, get...), true)
	ok(t, err)
	s.SetProperty(Path("upstream", "address"), []byte("10.0.0.1:8000"))
	_, err = s.ResponseHeaders(Headers{{":status", "503"}}, true)
	ok(t, err)
	ok(t, s.End(EndNormal))
	p.results(`
		prop plugin_root_id = 0 root
		prop request$path = 0 /a?b=c
		prop request$url_path = 0 /a
		prop request$method = 0 GET
		prop request$host = 0 example.com
		prop request$headers$x-one = 0 1
		prop request$headers$x-none = 1
		prop xds$cluster_name = 0 vllm
		prop node$id = 0 n1
		prop upstream$address = 1
		propint response$code = 1
		prop nothing = 1
		prop upstream$address = 0 10.0.0.1:8000
		propint response$code = 0 503
		propint response$code = 0 503
		propint response$flags = 0 0
		prop response$code_details = 0 via_upstream`)
}

// What a plugin sets lands in the filter state under "wasm." and needs a stream.
func TestSetProperty(t *testing.T) {
	p := newProbe(t, `
		configure setprop dest nowhere
		request_headers setprop dest 10.0.0.1:8000
		request_headers prop dest
		request_headers prop filter_state$wasm.dest
		request_headers prop wasm.dest`)
	p.seen = 0
	s := p.Worker(0).NewStream()
	_, err := s.RequestHeaders(get, true)
	ok(t, err)
	p.results(`
		setprop dest nowhere = 1
		setprop dest 10.0.0.1:8000 = 0
		prop dest = 0 10.0.0.1:8000
		prop filter_state$wasm.dest = 0 10.0.0.1:8000
		prop wasm.dest = 1`)
	if v, ok := s.FilterState("wasm.dest"); !ok || string(v) != "10.0.0.1:8000" {
		t.Errorf("filter state %q", v)
	}
}

// How a stream ended is told by flags and details, as on Envoy.
func TestEndReasonsAsProperties(t *testing.T) {
	for _, tt := range []struct {
		reason   EndReason
		response bool
		want     string
	}{
		{EndNormal, true, "propint response$code = 0 200\npropint response$flags = 0 0\nprop response$code_details = 0 via_upstream"},
		{EndClientGone, false, "propint response$code = 1\npropint response$flags = 0 16384\nprop response$code_details = 0 downstream_remote_disconnect"},
		{EndClientGone, true, "propint response$code = 0 200\npropint response$flags = 0 16384\nprop response$code_details = 0 downstream_remote_disconnect"},
		{EndUpstreamReset, true, "propint response$code = 0 200\npropint response$flags = 0 8388608\nprop response$code_details = 0 upstream_reset_after_response_started{protocol_error}"},
		{EndUpstreamReset, false, "propint response$code = 1\npropint response$flags = 0 64\nprop response$code_details = 0 upstream_reset_before_response_started{connection_termination}"},
		{EndTimeout, false, "propint response$code = 1\npropint response$flags = 0 4\nprop response$code_details = 0 response_timeout"},
	} {
		p := newProbe(t, "log propint response$code\nlog propint response$flags\nlog prop response$code_details")
		s := p.Worker(0).NewStream()
		_, err := s.RequestHeaders(get, true)
		ok(t, err)
		if tt.response {
			_, err = s.ResponseHeaders(reply, false)
			ok(t, err)
		}
		ok(t, s.End(tt.reason))
		p.results(tt.want)
	}
}
