package plugin

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// The shipped module does the same again, to the last bit of its memory, when it is told the same: it keeps no time, order
// or chance that a host does not give it. Two workers place, release and crash, and get another configuration.
func TestShippedModuleReplaysBitForBit(t *testing.T) {
	var recording bytes.Buffer
	g := startWith(t, hosttest.Options{Workers: 2, AllowTraps: true, Adjust: func(c *hostsim.Config) {
		c.Recorder = hostsim.NewRecorder(&recording, hostsim.RecordOptions{})
		c.FailurePolicy = hostsim.FailReload
		c.Seed = 5
	}}, twoReplicas)
	for i := range 120 {
		g.Do(i%2, turnOf("s"+string(rune('a'+i%26))))
		g.Do(i/2%2, hosttest.Request{Path: "/v1/chat/completions", Body: "{}"})
		if i%10 == 0 {
			g.Do(i/10%2, hosttest.Request{Method: "POST", Path: "/finish_session?session_id=sa"})
			g.Advance(3 * tick)
		}
		switch i {
		case 40:
			err := g.InjectFaults([]hostsim.Fault{
				{At: "proxy_on_response_headers", Nth: 3, Trap: true},
				{At: "env.proxy_set_shared_data", Nth: 5, Answer: "CAS_MISMATCH"},
				{At: "env.proxy_get_shared_data", Nth: 30, Trap: true},
			})
			if err != nil {
				t.Fatal(err)
			}
		case 80:
			if err := g.Reconfigure([]byte(`{"policy":"round_robin",` + twoReplicas + `}`)); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	wasm, err := os.ReadFile(shipped)
	if err != nil {
		t.Fatal(err)
	}
	text := recording.String()
	report, err := hostsim.Check(context.Background(), wasm, &recording)
	if err != nil {
		t.Fatal(err)
	}
	if !report.SameModule || report.Memories != report.VMs || report.VMs < 6 || report.Callbacks < 1000 {
		t.Errorf("%+v", report)
	}

	// An answer that has been changed shows.
	changed := strings.Replace(text, `"status":"CAS_MISMATCH"`, `"status":"OK"`, 1)
	if _, err := hostsim.Check(context.Background(), wasm, strings.NewReader(changed)); !errors.Is(err, hostsim.ErrDifference) {
		t.Errorf("with a changed answer: %v", err)
	}
}
