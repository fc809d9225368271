package plugin

import (
	"fmt"
	"testing"
)

// What a turn costs inside the plugin, shared data being a map in the same
// process: the gateway's host calls come on top.
func BenchmarkTurn(b *testing.B) {
	benchmark(b, "sticky_least_loaded", []int{4, 64}, []int{1000, 100_000})
	for _, name := range policyNames[1:] {
		benchmark(b, name, []int{64}, []int{1000})
	}
}

func benchmark(b *testing.B, name string, replicaCounts, sessionCounts []int) {
	for _, replicas := range replicaCounts {
		for _, sessions := range sessionCounts {
			b.Run(fmt.Sprintf("policy=%s/replicas=%d/sessions=%d", name, replicas, sessions), func(b *testing.B) {
				data := newMemoryData()
				p := newPool(data, PoolConfig{Name: "p", Policy: name, Members: addresses(replicas)}, benchConfig(sessions), 1)
				p.store.adopt(0, 0)
				ids := make([][]byte, sessions)
				for i := range ids {
					ids[i] = fmt.Appendf(nil, "session-%032d", i)
				}
				turn := func(i int) {
					key := keyOf(string(ids[i%sessions]))
					d := p.decide(key, true, 0, nil, 1000)
					p.targetOf(d, key, 2, 1000)
				}
				for i := range sessions {
					turn(i)
				}
				b.ReportAllocs()
				i := 0
				for b.Loop() {
					turn(i)
					i++
				}
			})
		}
	}
}

func benchConfig(sessions int) *Config {
	c := defaultConfig()
	c.Session.MaxSessions = sessions
	return &c
}
