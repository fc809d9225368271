package policytest

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

func (r *run) printTurn(id string, d Decision) { fmt.Fprintln(&r.out, id, r.went(d)) }

// went says why a turn went where, and that it fails there.
func (r *run) went(d Decision) string {
	s := d.Reason + " " + r.name(d.Address)
	if r.failing[d.Address] {
		s += " (fails)"
	}
	return s
}

func (r *run) open() {
	var addresses, counts []string
	for _, m := range r.members[r.pool] {
		addresses = append(addresses, m.Address)
	}
	for i, n := range r.target.Open(r.pool, addresses) {
		counts = append(counts, fmt.Sprintf("%s %d", r.name(addresses[i]), n))
	}
	if len(counts) == 0 {
		counts = append(counts, "no members")
	}
	fmt.Fprintln(&r.out, strings.Join(counts, ", "))
}

func (r *run) printCounts(of []string) {
	slices.Sort(of)
	var parts []string
	for len(of) > 0 {
		n := 1
		for n < len(of) && of[n] == of[0] {
			n++
		}
		parts = append(parts, fmt.Sprintf("%d %s", n, of[0]))
		of = of[n:]
	}
	fmt.Fprintln(&r.out, strings.Join(parts, ", "))
}

func (r *run) name(address string) string {
	for c := 'a'; c <= 'z'; c++ {
		if Address(string(c)) == address {
			return string(c)
		}
	}
	return "-"
}

// expand replaces each s1..s3 by s1 s2 s3.
func expand(ids []string) (all []string) {
	for _, id := range ids {
		first, last, ok := strings.Cut(id, "..")
		if !ok {
			all = append(all, id)
			continue
		}
		prefix := strings.TrimRight(first, "0123456789")
		low, _ := strconv.Atoi(first[len(prefix):])
		high, _ := strconv.Atoi(strings.TrimPrefix(last, prefix))
		for n := low; n <= high; n++ {
			all = append(all, prefix+strconv.Itoa(n))
		}
	}
	return all
}
