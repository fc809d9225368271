package report

import (
	"encoding/json"
	"math"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// command made testdata/recorded.json; shorten trimmed it. It is data for the report and says nothing of what the replay
// measures today.
var command = strings.Fields("replay --in-process --seeds 3 --policy sticky_least_loaded,consistent_hash,cache_aware,per_request_round_robin --json -")

func recorded() *replay.Result {
	text, err := os.ReadFile("testdata/recorded.json")
	if err != nil {
		panic(err)
	}
	var r replay.Result
	if err := json.Unmarshal(text, &r); err != nil {
		panic(err)
	}
	return &r
}

// With -update: the recording.
func TestRecord(t *testing.T) {
	if !*update {
		if r := recorded(); len(r.Policies) != 4 || len(r.Policies[0].Seeds) != 3 || r.Policies[0].Seeds[0].Turns != 736 {
			t.Errorf("%d policies", len(r.Policies))
		}
		return
	}
	hostsim := exec.CommandContext(t.Context(), "go", append([]string{"run", "../../cmd/hostsim"}, command...)...)
	hostsim.Stderr = os.Stderr
	text, err := hostsim.Output()
	if err != nil {
		t.Fatal(err)
	}
	var r replay.Result
	if err := json.Unmarshal(text, &r); err != nil {
		t.Fatal(err)
	}
	shorten(&r)
	if text, err = json.Marshal(&r); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("testdata/recorded.json", append(text, '\n'), 0o644); err != nil {
		t.Fatal(err)
	}
}

// shorten drops what would make the recording large, and what depends on the machine.
func shorten(r *replay.Result) {
	for i, p := range shownPolicies(r) {
		for k := range r.Policies[i].Seeds {
			s := &r.Policies[i].Seeds[k]
			s.DecisionsPerSecond = 100_000
			if s != p.Run {
				s.Samples, s.Slowest, s.Latency = nil, nil, replay.Percentiles{}
			}
			s.Samples, s.Slowest = halve(halve(s.Samples)), s.Slowest[:min(4, len(s.Slowest))]
			for _, values := range [][]float64{s.Latency.TTFT, s.Latency.TPOT, s.Latency.E2E, s.Latency.Queue} {
				round(values, 1e4)
			}
			for i := range s.Slowest {
				for k := range s.Slowest[i].Turns {
					t := &s.Slowest[i].Turns[k]
					times := []float64{t.Sent, t.Admitted, t.First, t.End}
					round(times, 10)
					t.Sent, t.Admitted, t.First, t.End = times[0], times[1], times[2], times[3]
				}
			}
		}
	}
}

// halve joins each two samples.
func halve(samples []replay.Sample) (out []replay.Sample) {
	for i := 1; i < len(samples); i += 2 {
		a, b := samples[i-1], samples[i]
		b.PromptTokens, b.CachedTokens = a.PromptTokens+b.PromptTokens, a.CachedTokens+b.CachedTokens
		round(b.KVUse, 100)
		if b.HitRate = -1; b.PromptTokens > 0 {
			b.HitRate = math.Round(float64(b.CachedTokens)/float64(b.PromptTokens)*1e4) / 1e4
		}
		out = append(out, b)
	}
	return out
}

// round rounds to so many parts of one.
func round(values []float64, parts float64) {
	for i, v := range values {
		values[i] = math.Round(v*parts) / parts
	}
}
