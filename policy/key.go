package policy

import (
	"encoding/binary"
	"math/bits"
)

// Hash is the 128-bit keyed hash of a session id. It is the only form in which
// an id is stored.
type Hash struct{ Hi, Lo uint64 }

// Key identifies one session to every policy. It is built once per turn, by
// NewKey, so that no policy can read the id in another way.
type Key struct {
	// Hash names the session in the session table. It depends on the secret:
	// a client cannot aim ids at one shard.
	Hash Hash
	// Rank orders replicas for the session (rendezvous hashing). It depends on
	// the id alone, so that two gateways, or one before and after a restart,
	// agree on the order.
	Rank uint64
}

// Secret keys Hash. It lives as long as the session table it protects.
type Secret [16]byte

// NewKey returns the key of the session that id names. id is opaque bytes of any
// length; the empty id is a valid input but callers treat it as no session.
// Cost: O(len(id)), no allocation. Pure.
//
// Hash and Rank are SipHash-2-4 with 128-bit output (Aumasson and Bernstein, 2012), keyed by
// the secret and by zero, in one pass. It is written out, without a call or a loop but for
// the id: on the way of every turn those would cost more than the arithmetic.
func NewKey(secret Secret, id []byte) (key Key) {
	k0 := binary.LittleEndian.Uint64(secret[:8])
	k1 := binary.LittleEndian.Uint64(secret[8:])
	const (
		init0 = 0x736f6d6570736575
		init1 = 0x646f72616e646f6d ^ 0xee
		init2 = 0x6c7967656e657261
		init3 = 0x7465646279746573
	)
	v0, v1, v2, v3 := k0^init0, k1^init1, k0^init2, k1^init3
	w0, w1, w2, w3 := uint64(init0), uint64(init1), uint64(init2), uint64(init3)
	last := uint64(len(id)) << 56
	for ; len(id) >= 8; id = id[8:] {
		m := binary.LittleEndian.Uint64(id)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3^m)
		v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
		v0 ^= m
		w0, w1, w2, w3 = sipRound(w0, w1, w2, w3^m)
		w0, w1, w2, w3 = sipRound(w0, w1, w2, w3)
		w0 ^= m
	}
	for i, b := range id {
		last |= uint64(b) << (8 * i)
	}
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3^last)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v2 = v0^last, v2^0xee
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	key.Hash.Hi = v0 ^ v1 ^ v2 ^ v3
	v1 ^= 0xdd
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	v0, v1, v2, v3 = sipRound(v0, v1, v2, v3)
	key.Hash.Lo = v0 ^ v1 ^ v2 ^ v3

	w0, w1, w2, w3 = sipRound(w0, w1, w2, w3^last)
	w0, w1, w2, w3 = sipRound(w0, w1, w2, w3)
	w0, w2 = w0^last, w2^0xee
	w0, w1, w2, w3 = sipRound(w0, w1, w2, w3)
	w0, w1, w2, w3 = sipRound(w0, w1, w2, w3)
	w0, w1, w2, w3 = sipRound(w0, w1, w2, w3)
	w0, w1, w2, w3 = sipRound(w0, w1, w2, w3)
	w1 ^= 0xdd
	w0, w1, w2, w3 = sipRound(w0, w1, w2, w3)
	w0, w1, w2, w3 = sipRound(w0, w1, w2, w3)
	w0, w1, w2, w3 = sipRound(w0, w1, w2, w3)
	w0, w1, w2, w3 = sipRound(w0, w1, w2, w3)
	key.Rank = w0 ^ w1 ^ w2 ^ w3
	return key
}

// AppendScope appends one scope value (a tenant, say) to the bytes that a key is
// made of. The length goes first: ("ab", "c") and ("a", "bc") differ.
func AppendScope(dst []byte, value string) []byte {
	dst = binary.AppendUvarint(dst, uint64(len(value)))
	return append(dst, value...)
}

// RankAddress returns the rendezvous identity of a replica's address.
func RankAddress(address string) uint64 {
	return NewKey(Secret{}, []byte(address)).Rank
}

// score is the rendezvous weight of a replica for a session: the replica with
// the highest score comes first (Thaler and Ravishankar, 1998).
func score(session, replica uint64) uint64 {
	return mix(session ^ bits.RotateLeft64(replica, 32))
}

func sipRound(v0, v1, v2, v3 uint64) (uint64, uint64, uint64, uint64) {
	v0 += v1
	v2 += v3
	v1 = bits.RotateLeft64(v1, 13) ^ v0
	v3 = bits.RotateLeft64(v3, 16) ^ v2
	v0 = bits.RotateLeft64(v0, 32) + v3
	v2 += v1
	v3 = bits.RotateLeft64(v3, 21) ^ v0
	v1 = bits.RotateLeft64(v1, 17) ^ v2
	return v0, v1, bits.RotateLeft64(v2, 32), v3
}
