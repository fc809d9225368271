package standalone_test

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy-gateway/standalone"
)

// What is wrong from the start, when there is no former plugin that could stay in
// force, and what bodies.yaml makes possible.
func TestStart(t *testing.T) {
	var digest any
	s := start(t, func(o *standalone.Objects) {
		o.Edit("EnvoyExtensionPolicy", func(spec standalone.Object) {
			plugin := spec.List("wasm")[0]
			plugin["failOpen"] = false
			image := plugin.At("code").At("image")
			digest, image["sha256"] = image["sha256"], strings.Repeat("0", 64)
		})
	})
	plugin := func(edit func(standalone.Object)) {
		s.objects.Edit("EnvoyExtensionPolicy", func(spec standalone.Object) { edit(spec.List("wasm")[0]) })
		s.apply(t)
	}
	unpinned := func() bool {
		r := s.turn(t, "s")
		return r.status == 200 && r.reason == ""
	}
	until(t, "without failOpen a digest that does not fit is 500 for every request", func() bool { return s.turn(t, "s").status == 500 })

	plugin(func(p standalone.Object) { p["failOpen"] = true })
	until(t, "with failOpen requests go on without the plugin", unpinned)

	mark := s.Log.Len()
	plugin(func(p standalone.Object) {
		p.At("code").At("image")["sha256"] = digest
		p.At("config")["polcy"] = "random"
	})
	until(t, "the plugin refuses its first configuration", func() bool {
		return strings.Contains(s.Log.Since(mark), `did you mean "policy"?`) && strings.Contains(s.Log.Since(mark), "failed to load")
	})
	for range 20 {
		if !unpinned() {
			t.Fatal("with failOpen requests do not go on after a first configuration that is refused")
		}
	}
	if said := s.Log.Since(mark); strings.Contains(said, "config rejected") {
		t.Errorf("Envoy refuses the listener:\n%s", said)
	}
	plugin(func(p standalone.Object) { delete(p.At("config"), "polcy") })
	until(t, "the plugin is there", func() bool { return s.turn(t, "s").reason != "" })
	s.bodies(t)
}

// bodies: with bodies.yaml an id in the body counts.
func (s *setup) bodies(t *testing.T) {
	text, err := os.ReadFile("../bodies.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var patch standalone.Object
	if err := yaml.Unmarshal(text, &patch); err != nil {
		t.Fatal(err)
	}
	s.objects.Add(patch)
	s.config(func(c standalone.Object) { c["session"] = standalone.Object{"body": []any{"user"}} })
	s.apply(t)
	until(t, "an id in the body counts", func() bool {
		r := s.post(t, "/v1/chat/completions", `{"user":"in the body"}`)
		return r.status == 200 && r.reason == "pinned"
	})
	wasm := s.manager(t).Get(`http_filters.#(name%"*wasm*").typed_config.config`)
	if wasm.Get("failure_policy").String() != "FAIL_RELOAD" || wasm.Get("reload_config.backoff.base_interval").String() != "0.100s" || wasm.Get("fail_open").Exists() {
		t.Errorf("the plugin is loaded as %s", wasm.Get("failure_policy").Raw)
	}
}
