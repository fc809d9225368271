package check_test

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy-gateway/check"
)

const example = "../pinwheel.yaml"

func read(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(example)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestExamplesAreValid(t *testing.T) {
	for _, name := range []string{"pinwheel.yaml", "bodies.yaml"} {
		text, err := os.ReadFile("../" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := check.File(name, text); err != nil {
			t.Error(err)
		}
	}
}

// Mistakes in every kind of the example: fields that the types do not know, values
// that the schemas refuse, and CEL rules. Each is reported once, on its line.
func TestMistakesAreFound(t *testing.T) {
	text := read(t)
	cases := []struct {
		from, to, say string
		up            int // lines from the mistake up to where it is reported
	}{
		{"controllerName:", "controlerName:", "GatewayClass pinwheel: spec.controlerName: unknown field", 0},
		{"gateway.envoyproxy.io/gatewayclass-controller", "nodomain", "GatewayClass pinwheel: spec.controllerName: ", 0},
		{"gatewayClassName:", "gatewayClass:", "Gateway pinwheel: spec.gatewayClass: unknown field", 0},
		{"port: 80}", "port: 80000}", "Gateway pinwheel: spec.listeners[0].port: ", 0},
		{"drainTimeout: 3600s", "drainTime: 3600s", "EnvoyProxy pinwheel: spec.shutdown.drainTime: unknown field", 0},
		{"after: envoy.filters.http.rbac", "after: envoy.filters.http.rback", "EnvoyProxy pinwheel: spec.filterOrder[0].after: Unsupported value", 0},
		{"after: envoy.filters.http.ratelimit", "after: envoy.filters.http.ratelimit, before: envoy.filters.http.rbac", "EnvoyProxy pinwheel: spec.filterOrder[2]: ", 0},
		{"type: PathPrefix", "typ: PathPrefix", "HTTPRoute vllm: spec.rules[0].matches[0].path.typ: unknown field", 0},
		{"type: ResponseHeaderModifier", "type: RequestHeaderModifier", "HTTPRoute vllm: spec.rules[0].filters[0]: ", 0},
		{`sha256: "0000000000000000000000000000000000000000000000000000000000000000"`, "sha256: 0000000000000000000000000000000000000000000000000000000000000000", "EnvoyExtensionPolicy pinwheel: spec.wasm.code.image.sha256: a number does not fit here", 0},
		{"failOpen: true", "failopen: true", "EnvoyExtensionPolicy pinwheel: spec.wasm[0].failopen: unknown field", 0},
		{"type: Image", "type: HTTP", "EnvoyExtensionPolicy pinwheel: spec.wasm[0].code: ", 1},
		{"extractFrom: [{header:", "extractFrom: [{headers:", "BackendTrafficPolicy pinwheel: spec.loadBalancer.endpointOverride.extractFrom[0].headers: unknown field", 0},
		{"triggers: [connect-failure, refused-stream, reset]", "triggers: [connect-failure, refused, reset]", "BackendTrafficPolicy pinwheel: spec.retry.retryOn.triggers[1]: Unsupported value", 0},
		{"requestTimeout: 0s", "requestTimeout: 0", "BackendTrafficPolicy pinwheel: spec.timeout.http.requestTimeout: a number does not fit here", 0},
		{"type: LeastRequest", "type: ConsistentHash", "BackendTrafficPolicy pinwheel: spec.loadBalancer: ", 1},
		{"earlyRequestHeaders:", "earlyRequestHeader:", "ClientTrafficPolicy pinwheel: spec.headers.earlyRequestHeader: unknown field", 0},
		{"kind: ClientTrafficPolicy", "kind: ClientTraficPolicy", "ClientTraficPolicy pinwheel: kind: ", 0},
	}
	for _, c := range cases {
		t.Run(c.to, func(t *testing.T) {
			before, after, ok := strings.Cut(text, c.from)
			if !ok {
				t.Fatalf("%q is not in the example", c.from)
			}
			line := strings.Count(before, "\n") + 1 - c.up
			err := check.File("pinwheel.yaml", []byte(before+c.to+after))
			if !errors.Is(err, check.ErrInvalid) {
				t.Fatalf("no error for %q", c.to)
			}
			if n := strings.Count(err.Error(), "\n"); n > 1 {
				t.Errorf("one mistake is reported %d times:\n%v", n+1, err)
			}
			if want := fmt.Sprintf("invalid: pinwheel.yaml:%d: %s", line, c.say); !strings.HasPrefix(err.Error(), want) {
				t.Errorf("got  %v\nwant %s", err, want)
			}
		})
	}
}

func TestWhatIsNoObjectIsRefused(t *testing.T) {
	for _, text := range []string{"", "# nothing\n", "a: [\n", "kind: Pod\napiVersion: v1\nmetadata: {name: x}\n"} {
		if err := check.File("x.yaml", []byte(text)); !errors.Is(err, check.ErrInvalid) {
			t.Errorf("%q: %v, want ErrInvalid", text, err)
		}
	}
}
