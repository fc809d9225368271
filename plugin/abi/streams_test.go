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

// done is the stream that ended last.
var done uint32

func (s *testStream) OnHttpStreamDone() { done, s.id = s.id, 0 }

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
			done = 0
			if !s.end(ids[i]) || (done != 0) != called[ids[i]] || done != 0 && done != ids[i] {
				t.Fatalf("stream %d: ended %d, called %v", ids[i], done, called[ids[i]])
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
		s.end(id)
	}
	if s.end(2) || len(s.overflow) > 0 {
		t.Errorf("%d streams are left", len(s.overflow))
	}
}

type panicking struct {
	types.DefaultHttpContext
	ended int
}

func (p *panicking) OnHttpStreamDone() {
	if p.ended++; p.ended == 2 {
		panic("at the second end")
	}
}

type panickingPlugin struct{ types.DefaultPluginContext }

func (panickingPlugin) NewHttpContext(uint32) types.HttpContext { return &panicking{} }

// What a panic left half done is no other stream's, and neither is another plugin's.
func TestContextsServeOneStreamAfterAnother(t *testing.T) {
	addPlugin(1, &panickingPlugin{})
	addPlugin(2, &testPlugin{})
	defer removePlugin(2)
	var s streamTable
	serve := func(plugin uint32) (context types.HttpContext) {
		s.open(7, plugin)
		context = s.of(7)
		defer func() { _ = recover() }()
		s.end(7)
		return context
	}
	first := serve(1)
	if serve(1) != first {
		t.Error("a context serves no second stream")
	}
	if serve(1) == first {
		t.Error("a context that panicked serves another stream")
	}
	if _, ok := serve(2).(*testStream); !ok {
		t.Error("a stream got a context of another plugin")
	}
	serve(1)
	s.forget(1)
	removePlugin(1)
	if s.slot(7).context != nil {
		t.Error("the contexts of a plugin that is gone are kept")
	}
	defer func() {
		if recover() == nil {
			t.Error("a stream of a plugin that is gone got a context")
		}
	}()
	serve(1)
}
