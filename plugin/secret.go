package plugin

import (
	"encoding/binary"
	"math/rand/v2"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// secretKey holds the secret of this gateway process's session hashes.
const secretKey = keyRoot + "secret"

// sharedSecret returns the process's secret; the first worker to ask makes it.
// math/rand/v2 is seeded by the host at start; crypto/rand would kill the VM at
// the next garbage collection before Envoy 1.39.
func sharedSecret(data sharedData) (secret policy.Secret, err error) {
	value, cas, err := data.Get(secretKey)
	if err != nil {
		return secret, err
	}
	if len(value) != len(secret) {
		fresh := binary.LittleEndian.AppendUint64(nil, rand.Uint64())
		fresh = binary.LittleEndian.AppendUint64(fresh, rand.Uint64())
		// Losing the race is as good as winning it: the value is read back.
		_ = data.Set(secretKey, fresh, cas)
		if value, _, err = data.Get(secretKey); err != nil {
			return secret, err
		}
	}
	copy(secret[:], value)
	return secret, nil
}
