//go:build !wasip1

package plugin

import (
	"encoding/binary"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// find returns the position of the session's pin, or -1.
func (s shard) find(h policy.Hash) int {
	for i := range s.len() {
		b := s[1+i*pinSize:]
		if binary.LittleEndian.Uint64(b) == h.Hi && binary.LittleEndian.Uint64(b[8:]) == h.Lo {
			return i
		}
	}
	return -1
}
