package plugin

import (
	"strconv"

	"github.com/pinwheel-proxy/pinwheel/plugin/json"
)

// statuses is a set of HTTP statuses from 400 to 599.
type statuses [4]uint64

const firstStatus, lastStatus = 400, 599

// with returns the set with the statuses from low to high in it, both in range.
func (s statuses) with(low, high int) statuses {
	for n := low - firstStatus; n <= high-firstStatus; n++ {
		s[n/64] |= 1 << (n % 64)
	}
	return s
}

// has reports whether a status, as the header :status spells it, is in the set.
func (s *statuses) has(status string) bool {
	if len(status) != 3 {
		return false
	}
	n := uint(status[0]-'0')*100 + uint(status[1]-'0')*10 + uint(status[2]-'0') - firstStatus
	return n < 200 && s[n/64]>>(n%64)&1 != 0
}

// statuses reads a list of statuses, and of "4xx" and "5xx" for a hundred each.
func (d *decoder) statuses(dst *statuses, path string, v json.Result) {
	*dst = statuses{}
	d.array(path, v, func(path string, v json.Result) {
		n, err := strconv.Atoi(v.Raw)
		switch {
		case v.Type == json.Number && err == nil && n >= firstStatus && n <= lastStatus:
			*dst = dst.with(n, n)
		case v.Raw == `"4xx"`:
			*dst = dst.with(400, 499)
		case v.Raw == `"5xx"`:
			*dst = dst.with(500, 599)
		default:
			d.fail(path, v.Raw+" is no status of a failure", "a number from 400 to 599, \"4xx\" or \"5xx\"")
		}
	})
}
