//go:build peer

package vllmrouter

import "slices"

// ledger is our own count: the replica that served each open session's last turn.
type ledger map[string]string

func (l ledger) load(address string) (n int) {
	for _, home := range l {
		if home == address {
			n++
		}
	}
	return n
}

func (l ledger) counts() map[string]int {
	c := map[string]int{}
	for _, home := range l {
		c[home]++
	}
	return c
}

// spread is the difference between the most and the fewest open sessions of the replicas.
func spread(l ledger, replicas []string) int {
	counts := make([]int, len(replicas))
	for i, r := range replicas {
		counts[i] = l.load(r)
	}
	return slices.Max(counts) - slices.Min(counts)
}
