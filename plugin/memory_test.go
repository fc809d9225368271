package plugin

import (
	"bytes"
	"errors"
	"strings"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// memoryData is shared data with Envoy's rules for cas: one counter for the
// whole process, 0 overwrites, an absent key is created whatever the cas.
type memoryData struct {
	values map[string][]byte
	cas    map[string]uint32
	last   uint32
	// before, if set, runs ahead of every access.
	before func()
	// refuse, if set, says which accesses fail.
	refuse func(key string, write bool) error
}

func newMemoryData() *memoryData {
	return &memoryData{values: map[string][]byte{}, cas: map[string]uint32{}}
}

func (m *memoryData) access(key string, write bool) error {
	if m.before != nil {
		m.before()
	}
	if m.refuse != nil {
		return m.refuse(key, write)
	}
	return nil
}

func (m *memoryData) Get(key string) ([]byte, uint32, error) {
	if err := m.access(key, false); err != nil {
		return nil, 0, err
	}
	v, ok := m.values[key]
	if !ok {
		return nil, abi.CreateCAS, nil
	}
	return bytes.Clone(v), m.cas[key], nil
}

func (m *memoryData) Set(key string, value []byte, cas uint32) error {
	if err := m.access(key, true); err != nil {
		return err
	}
	if old, ok := m.cas[key]; ok && cas != 0 && cas != old {
		return types.ErrorStatusCasMismatch
	}
	m.last++
	key = strings.Clone(key)
	m.values[key], m.cas[key] = bytes.Clone(value), m.last
	return nil
}

func (m *memoryData) Forget() {}

// pins returns the pins of a pool, read from the shards themselves.
func (m *memoryData) pins(pool string) map[policy.Hash]policy.Pin {
	pins := map[policy.Hash]policy.Pin{}
	for key, v := range m.values {
		if strings.HasPrefix(key, keyRoot+pool+"/s/") {
			for sh, i := shard(v), 0; i < sh.len(); i++ {
				if _, twice := pins[sh.hash(i)]; twice {
					panic("a session has two pins")
				}
				pins[sh.hash(i)] = sh.pin(i)
			}
		}
	}
	return pins
}

var errRefused = errors.New("refused by the test")

// turn is what pool.decide does with a session: place it unless its pin holds.
func (s *store) turn(key policy.Key, prompt *policy.Prompt, now int64) (d policy.Decision, ok bool) {
	var p placement
	switch {
	case !s.look(&p, key, now):
		return policy.Decision{}, false
	case p.reason == policy.Pinned:
		return policy.Decision{Replica: p.old.Replica, Reason: policy.Pinned}, true
	}
	return s.place(key, prompt, now, &p)
}
