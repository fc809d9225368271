package abi

import (
	"math/rand/v2"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

type testPlugin struct{ types.DefaultPluginContext }

type testStream struct {
	types.DefaultHttpContext
	id uint32
}

func (testPlugin) NewHttpContext(id uint32) types.HttpContext { return &testStream{id: id} }

// Streams of all lifetimes, against a map.
func TestStreamTable(t *testing.T) {
	addPlugin(1, &testPlugin{})
	defer removePlugin(1)
	var s streamTable
	model := map[uint32]bool{}
	rng := rand.New(rand.NewPCG(1, 1))
	var ids []uint32
	for id := uint32(2); id < 20_000; id++ {
		s.create(id, 1)
		model[id] = true
		ids = append(ids, id)
		for len(ids) > 300 || rng.IntN(3) == 0 && len(ids) > 0 {
			i := len(ids) - 1
			if rng.IntN(4) == 0 {
				i = rng.IntN(len(ids))
			}
			if removed, _ := s.remove(ids[i]).(*testStream); removed == nil || removed.id != ids[i] {
				t.Fatalf("stream %d: removed %v", ids[i], removed)
			}
			delete(model, ids[i])
			ids = append(ids[:i], ids[i+1:]...)
		}
		probe := uint32(2 + rng.IntN(int(id)))
		found, _ := s.find(probe).(*testStream)
		if (found != nil) != model[probe] || found != nil && found.id != probe {
			t.Fatalf("stream %d: found %v, open %v", probe, found, model[probe])
		}
	}
	for id := range model {
		s.remove(id)
	}
	if len(s.overflow) > 0 || s.remove(2) != nil {
		t.Errorf("%d streams are left", len(s.overflow))
	}
}
