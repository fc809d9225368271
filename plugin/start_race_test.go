package plugin

import (
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// Sixteen workers start at once over empty shared data and serve a turn of one
// session: whoever finds that another was faster goes on with what that one wrote
// (higress-group/higress#3947).
func TestWorkersThatStartAtOnceAgree(t *testing.T) {
	for seed := range uint64(200) {
		data := newMemoryData()
		var replicas [16]uint32
		workers := make([]func(), len(replicas))
		for w := range workers {
			workers[w] = func() {
				secret, err := sharedSecret(data)
				s := newStore(data, PoolConfig{Name: "p", Members: addresses(3)}, testSession(1000))
				d, ok := s.turn(policy.NewKey(secret, []byte("s")), nil, 0)
				if err != nil || !ok || s.stats.faults != [numFaults]uint64{} {
					t.Errorf("seed %d: %v, %+v, faults %v", seed, err, d, s.stats.faults)
				}
				replicas[w] = d.Replica
			}
		}
		interleave(data, seed, nil, workers...)
		for _, id := range replicas {
			if id == 0 || id != replicas[0] {
				t.Fatalf("seed %d: the session's turns went to %v", seed, replicas)
			}
		}
		if n := len(data.pins("p")); n != 1 {
			t.Fatalf("seed %d: %d pins", seed, n)
		}
	}
}
