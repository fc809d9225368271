package plugin

import (
	"strings"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// An index that does not answer, or that another version wrote, is an empty one:
// the session is placed by load, and pinned.
func TestALostIndexIsAnEmptyOne(t *testing.T) {
	const noFault = fault(numFaults)
	inIndex := func(key string) bool { return strings.Contains(key, "/p/p/") }
	for name, tt := range map[string]struct {
		harm  func(*memoryData)
		fault fault
		heals bool
	}{
		"reads refused": {func(m *memoryData) {
			m.refuse = func(key string, write bool) error { return refuseIf(inIndex(key) && !write) }
		}, faultSharedData, false},
		"foreign": {func(m *memoryData) {
			for key := range m.values {
				if inIndex(key) {
					m.values[key] = []byte{9, 1, 2, 3}
				}
			}
		}, faultSchema, true},
		"emptied": {func(m *memoryData) {
			for key := range m.values {
				if inIndex(key) {
					m.values[key] = nil
				}
			}
		}, noFault, true},
		"lost": {func(m *memoryData) {
			for key := range m.values {
				if inIndex(key) {
					delete(m.values, key)
					delete(m.cas, key)
				}
			}
		}, noFault, true},
	} {
		data := newMemoryData()
		s := openCacheAware(t, data, addresses(3), 65536)
		prompt := promptWith(part(1, 4000))
		first, _ := s.turn(keyOf("a"), prompt, 1000)
		if d, _ := s.turn(keyOf("b"), prompt, 1000); d.Replica != first.Replica {
			t.Fatal("the index has no effect")
		}
		tt.harm(data)
		s.stats.faults = [numFaults]uint64{}
		d, ok := s.turn(keyOf("c"), prompt, 1000)
		if !ok || d.Replica == first.Replica {
			t.Errorf("%s: %+v, ok %v; the first is on %d", name, d, ok, first.Replica)
		}
		for f, n := range s.stats.faults {
			if (n > 0) != (fault(f) == tt.fault) {
				t.Errorf("%s: %d faults %s", name, n, faultNames[f])
			}
		}
		data.refuse = nil
		if again, _ := s.turn(keyOf("d"), prompt, 1000); tt.heals && again.Replica != d.Replica {
			t.Errorf("%s: on %d, its prompt is known on %d", name, again.Replica, d.Replica)
		}
		mustBalance(t, data, s, name)
	}
}

// A prompt that cannot be recorded is placed, pinned and counted all the same.
func TestAPromptThatCannotBeRecorded(t *testing.T) {
	for _, tt := range []struct {
		refusal error
		fault   fault
		writes  int // the record, the pin, and no shard after the first that fails
	}{{errRefused, faultSharedData, 2 + 1}, {types.ErrorStatusCasMismatch, faultCAS, 2 + maxTries}} {
		data := &calls{memoryData: newMemoryData()}
		s := openCacheAware(t, data, addresses(3), 65536)
		data.writes = 0
		data.refuse = func(key string, write bool) error {
			if strings.Contains(key, "/p/p/") && write {
				return tt.refusal
			}
			return nil
		}
		if d, ok := s.turn(keyOf("a"), promptWith(part(1, 4000)), 1000); !ok || d.Reason != policy.Placed {
			t.Errorf("%v: %+v, ok %v", tt.refusal, d, ok)
		}
		if s.stats.faults[tt.fault] == 0 {
			t.Errorf("%v: not counted", tt.refusal)
		}
		if data.writes != tt.writes {
			t.Errorf("%v: %d writes, want %d", tt.refusal, data.writes, tt.writes)
		}
		data.refuse = nil
		if d, _ := s.turn(keyOf("a"), promptWith(part(1, 4000)), 1000); d.Reason != policy.Pinned {
			t.Errorf("%v: then %+v", tt.refusal, d)
		}
		mustBalance(t, data.memoryData, s, tt.refusal.Error())
	}
}

func refuseIf(refuse bool) error {
	if refuse {
		return errRefused
	}
	return nil
}

// A turn that could not look anything up has read no shard: what an earlier callback
// read is memory of others by now, and must not go into the index.
func TestNothingIsRecordedOverWhatAnEarlierCallbackRead(t *testing.T) {
	data := newMemoryData()
	s := openCacheAware(t, data, addresses(3), 32)
	prompt := promptWith(part(1, 600))
	s.turn(keyOf("a"), prompt, 1000)
	s.prefixes.lookup(prompt, &s.view.Replicas, 1000)
	for _, read := range s.prefixes.read { // the callback ends
		for i := range read.value[1:] {
			read.value[1+i] = 0xff
		}
	}
	refused := false
	data.refuse = func(key string, _ bool) error {
		if !refused && key == s.prefix+"replicas" {
			refused = true
			return errRefused
		}
		return nil
	}
	if d, ok := s.turn(keyOf("b"), prompt, 1000); !ok || d.Reason != policy.Placed || !refused {
		t.Fatalf("%+v, ok %v, refused %v", d, ok, refused)
	}
	if entries, _ := indexSize(data); entries != prompt.Prefixes() {
		t.Errorf("%d entries for a prompt of %d prefixes", entries, prompt.Prefixes())
	}
	if n := s.stats.faults[faultSchema] + s.stats.retries; n > 0 {
		t.Errorf("%d foreign shards and lost writes", n)
	}
}
