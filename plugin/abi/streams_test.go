package abi

import (
	"math/rand/v2"
	"testing"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

type testPlugin struct{ types.DefaultPluginContext }

type testStream struct {
	types.DefaultHttpContext
	id uint32 // 0: it serves none
}

func (testPlugin) NewHttpContext(uint32) types.HttpContext { return &testStream{} }

// Streams of all lifetimes, against a map.
func TestStreamTable(t *testing.T) {
	addPlugin(1, &testPlugin{})
	defer removePlugin(1)
	var s streamTable
	model, called := map[uint32]bool{}, map[uint32]bool{}
	rng := rand.New(rand.NewPCG(1, 1))
	var ids []uint32
	for id := uint32(2); id < 20_000; id++ {
		if !s.open(id, 1) {
			s.openBeside(id, 1)
		}
		model[id] = true
		ids = append(ids, id)
		for len(ids) > 300 || rng.IntN(3) == 0 && len(ids) > 0 {
			i := len(ids) - 1
			if rng.IntN(4) == 0 {
				i = rng.IntN(len(ids))
			}
			context, ok := s.close(ids[i])
			closed, _ := context.(*testStream)
			if !ok || closed != nil && closed.id != ids[i] || (closed != nil) != called[ids[i]] {
				t.Fatalf("stream %d: closed %v %v", ids[i], closed, ok)
			}
			if closed != nil {
				closed.id = 0 // it may serve another
			}
			delete(model, ids[i])
			ids = append(ids[:i], ids[i+1:]...)
		}
		probe := uint32(2 + rng.IntN(int(id)))
		found := s.find(probe)
		if (found != nil) != model[probe] {
			t.Fatalf("stream %d: found %v, open %v", probe, found, model[probe])
		}
		if found != nil {
			of := s.of(probe).(*testStream)
			if s.of(probe) != of || current != probe || of.id != 0 && of.id != probe {
				t.Fatalf("stream %d: %v", probe, of)
			}
			of.id, called[probe] = probe, true
		}
	}
	for id := range model {
		s.close(id)
	}
	if _, ok := s.close(2); len(s.overflow) > 0 || ok {
		t.Errorf("%d streams are left", len(s.overflow))
	}
}
