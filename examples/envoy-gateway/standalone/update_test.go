package standalone_test

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy-gateway/standalone"
)

// again is the same plugin with other bytes: a custom section at its end.
func (s *setup) again(note string) []byte {
	section := append([]byte{byte(len(note))}, note...)
	return append(append(append([]byte(nil), s.wasm...), 0, byte(len(section))), section...)
}

// upgrade: a new digest replaces the plugin; pins survive and nothing fails.
func (s *setup) upgrade(t *testing.T) {
	home := s.turn(t, "kept").served
	next := s.again("next")
	image, digest := s.push(t, next, "0.0.2")
	s.objects.Plugin(image, digest)
	s.apply(t)
	sum := sha256.Sum256(next)
	until(t, "the new plugin is in force", func() bool {
		if r := s.turn(t, "kept"); r.status != 200 || r.served != home || r.reason != "pinned" {
			t.Fatalf("during the upgrade: %+v, want %s, pinned", r, home)
		}
		dump, err := s.Admin.Get(t.Context(), "/config_dump?resource=dynamic_listeners")
		return err == nil && strings.Contains(dump, hex.EncodeToString(sum[:])) && !strings.Contains(dump, "warming_state")
	})
	if r := s.turn(t, "kept"); r.status != 200 || r.served != home || r.reason != "pinned" {
		t.Errorf("after the upgrade: %+v, want %s, pinned", r, home)
	}
	s.release(t, "kept")
}

// off: without the policy requests go on unpinned, and clients do not choose; with it
// again the pins are there.
func (s *setup) off(t *testing.T) {
	home := s.turn(t, "off").served
	policy := s.objects.Remove("EnvoyExtensionPolicy")
	s.apply(t)
	until(t, "the plugin is off", func() bool {
		r := s.turn(t, "off")
		if r.status != 200 {
			t.Fatalf("a request failed: %+v", r)
		}
		return r.reason == ""
	})
	// Nobody else overwrites what a client sends now, and the balancer would obey it.
	served := map[string]bool{}
	for range 20 {
		served[s.send(t, "GET", "/x", "x-gateway-destination-endpoint", home).served] = true
	}
	if len(served) < 2 {
		t.Errorf("20 requests that name a replica went to it alone: %v", served)
	}
	s.objects.Add(policy)
	s.apply(t)
	until(t, "the plugin is back", func() bool { return s.turn(t, "off").reason != "" })
	if r := s.turn(t, "off"); r.served != home || r.reason != "pinned" {
		t.Errorf("with the plugin again: %+v, want %s, pinned", r, home)
	}
	s.release(t, "off")
}

// wrongDigest: Envoy Gateway runs the image with that digest or none. With failOpen
// it takes the plugin that was there out: requests go on, balanced without pins. The
// pins are there again when the plugin is.
func (s *setup) wrongDigest(t *testing.T) {
	home := s.turn(t, "digest").served
	image, digest := s.push(t, s.again("other"), "0.0.3")
	s.objects.Plugin(image, strings.Repeat("0", 64))
	mark := s.Log.Len()
	s.apply(t)
	until(t, "requests go on without the plugin", func() bool {
		r := s.turn(t, "digest")
		if r.status != 200 {
			t.Fatalf("a request failed: %+v", r)
		}
		return r.reason == ""
	})
	if said := s.Log.Since(mark); !strings.Contains(said, "has checksum "+digest+", which does not match: 000") {
		t.Errorf("Envoy Gateway does not say why:\n%s", said)
	}
	s.objects.Plugin(image, digest)
	s.apply(t)
	until(t, "the plugin is back", func() bool { return s.turn(t, "digest").reason != "" })
	if r := s.turn(t, "digest"); r.served != home || r.reason != "pinned" {
		t.Errorf("with the plugin again: %+v, want %s, pinned", r, home)
	}
	s.release(t, "digest")
}

// refused: a configuration that the plugin refuses leaves the old one in force, and
// the log of the proxy says why in one line.
func (s *setup) refused(t *testing.T) {
	home := s.turn(t, "config").served
	mark := s.Log.Len()
	s.config(func(c standalone.Object) { c["polcy"] = "random" })
	s.apply(t)
	until(t, "Envoy refuses the listener", func() bool {
		if r := s.turn(t, "config"); r.status != 200 || r.served != home || r.reason != "pinned" {
			t.Fatalf("%+v, want %s, pinned", r, home)
		}
		return strings.Contains(s.Log.Since(mark), "listener 'llm/pinwheel/http' config rejected")
	})
	if said := s.Log.Since(mark); !strings.Contains(said, `configuration refused: polcy: unknown key; did you mean "policy"?`) {
		t.Errorf("the plugin does not say why:\n%s", said)
	}
	if r := s.turn(t, "config"); r.served != home || r.reason != "pinned" {
		t.Errorf("after the refusal: %+v, want %s, pinned", r, home)
	}
	s.config(func(c standalone.Object) { delete(c, "polcy") })
	s.apply(t)
	s.release(t, "config")
}

func (s *setup) config(edit func(standalone.Object)) {
	s.objects.Edit("EnvoyExtensionPolicy", func(spec standalone.Object) { edit(spec.List("wasm")[0].At("config")) })
}

// idsInBodies: Envoy Gateway cannot tell Envoy to show bodies to a plugin that
// holds a request. Nothing fails: such requests wait, until each worker has seen
// that no body comes, and have no affinity.
func (s *setup) idsInBodies(t *testing.T) {
	s.config(func(c standalone.Object) { c["session"] = standalone.Object{"body": []any{"user"}} })
	mark := s.Log.Len()
	s.apply(t)
	waited := time.Duration(0)
	until(t, "the plugin says what is missing", func() bool {
		began := time.Now()
		r := s.post(t, "/v1/chat/completions", `{"user":"u1"}`)
		if r.status != 200 || r.reason != "keyless" {
			t.Fatalf("%+v, want it keyless", r)
		}
		waited = max(waited, time.Since(began))
		return strings.Contains(s.Log.Since(mark), "allow_on_headers_stop_iteration")
	})
	if waited < time.Second {
		t.Errorf("the longest wait was %v, want body.wait at least, 1s", waited)
	}
	if r := s.turn(t, "inheader"); r.reason != "placed" {
		t.Errorf("an id in the header: %+v, want it placed", r)
	}
	s.release(t, "inheader")
}

// order: by the example's filterOrder who is refused by authorization neither opens
// nor ends a session; by Envoy Gateway's own order the plugin answers first.
func (s *setup) order(t *testing.T) {
	s.objects.Add(standalone.Object{
		"apiVersion": "gateway.envoyproxy.io/v1alpha1", "kind": "SecurityPolicy",
		"metadata": standalone.Object{"name": "guard", "namespace": "llm"},
		"spec": standalone.Object{
			"targetRefs": []any{standalone.Object{"group": "gateway.networking.k8s.io", "kind": "HTTPRoute", "name": "vllm"}},
			"authorization": standalone.Object{"defaultAction": "Deny", "rules": []any{standalone.Object{
				"name": "known", "action": "Allow",
				"principal": standalone.Object{"headers": []any{standalone.Object{"name": "x-user", "values": []any{"known"}}}},
			}}},
		},
	})
	s.apply(t)
	until(t, "strangers are refused", func() bool { return s.turn(t, "guarded").status == 403 })
	if f := strings.Join(s.filters(t), " "); f != "rbac wasm router" {
		t.Errorf("the filters are %s", f)
	}
	if s.release(t, "guarded") {
		t.Error("a stranger ended a session")
	}
	if r := s.send(t, "GET", "/x", "x-session-id", "known", "x-user", "known"); r.status != 200 || r.reason != "placed" {
		t.Errorf("%+v, want the first turn that was let through placed", r)
	}
	s.objects.Edit("EnvoyProxy", func(spec standalone.Object) { delete(spec, "filterOrder") })
	s.objects.Rename("EnvoyProxy", "other")
	s.objects.Edit("Gateway", func(spec standalone.Object) { spec.At("infrastructure").At("parametersRef")["name"] = "other" })
	s.apply(t)
	until(t, "by Envoy Gateway's own order strangers end sessions", func() bool { return s.release(t, "guarded") })
	if f := strings.Join(s.filters(t), " "); f != "wasm rbac router" {
		t.Errorf("the filters are %s", f)
	}
}

func (s *setup) apply(t *testing.T) {
	t.Helper()
	if err := s.Apply(s.objects); err != nil {
		t.Fatal(err)
	}
}
