//go:build !wasip1

package abi

// sift notes what it finds in h of the names in the buckets: out is by their numbers.
func sift(h *headers, buckets *[64]*name, out []found) {
	clear(out)
	n := Names{buckets: *buckets}
	for at := range h.all {
		name := h.name(at)
		i := n.number(name)
		if name == "" || i < 0 {
			continue
		}
		if out[i].times == 0 {
			out[i].at, out[i].size = uint32(at.value), uint32(at.end-at.value)
		}
		out[i].times++
	}
}
