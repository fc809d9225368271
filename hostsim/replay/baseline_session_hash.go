package replay

import (
	"crypto/sha256"
	"encoding/binary"
)

// sessionHash is the cure of perProcessCounter by NVIDIA-NeMo/Gym#2369 (Apache-2.0): the first 8 bytes of the session id's
// SHA-256, big endian, mod n, in every process.
type sessionHash struct{}

func (sessionHash) choose(t *Turn, members []int) int {
	sum := sha256.Sum256([]byte(t.Session))
	return members[binary.BigEndian.Uint64(sum[:8])%uint64(len(members))]
}

func (sessionHash) done(int) {}
