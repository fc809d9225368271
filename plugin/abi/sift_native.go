//go:build !wasip1

package abi

import "encoding/binary"

// sift notes in out the headers whose names are in the buckets, as many as there is room
// for, and returns their number; in h it leaves those behind them, none if what follows
// is no header map. A header without a name is never found.
func sift(h *Headers, buckets *[64]*name, out []Found) (n int) {
	for h.left > 0 && n < len(out) {
		size, valueSize := binary.LittleEndian.Uint32(h.data[h.sizes:]), binary.LittleEndian.Uint32(h.data[h.sizes+4:])
		nameEnd := h.at + int(size)
		end := nameEnd + int(valueSize) + 2
		if end > len(h.data) {
			h.left = 0
			break
		}
		bucket := uint32(shortNames)
		if size >= 4 {
			bucket = bucketOf(size, binary.LittleEndian.Uint32(h.data[nameEnd-4:]))
		}
		for known := buckets[bucket]; known != nil; known = known.next {
			if size > 0 && known.text == string(h.data[h.at:nameEnd]) {
				out[n] = Found{uint32(known.number), uint32(nameEnd) + 1, valueSize}
				n++
				break
			}
		}
		h.at = end
		h.sizes += 8
		h.left--
	}
	return n
}
