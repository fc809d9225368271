package abi

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// Register hands the plugin to the SDK. It takes the place of the SDK's
// SetVMContext.
//
// The SDK keeps three maps for each stream and looks each callback up in them,
// which costs more than all of Pinwheel's decision. Here streams have one table.
// What the SDK needs its maps for, call-outs made by a stream, is not there.
func Register(vm types.VMContext) { proxywasm.SetVMContext(&pluginWatch{vm}) }

// pluginWatch learns which plugin contexts there are: streams are made by them.
type pluginWatch struct{ types.VMContext }

func (w *pluginWatch) NewPluginContext(contextID uint32) types.PluginContext {
	p := w.VMContext.NewPluginContext(contextID)
	plugins[contextID] = p
	return p
}

var plugins = map[uint32]types.PluginContext{}

// streamTable holds the contexts of running streams.
type streamTable struct {
	byID map[uint32]types.HttpContext
	// last is what was found last: callbacks of one stream come in pairs.
	lastID uint32
	last   types.HttpContext
}

var streams = streamTable{byID: map[uint32]types.HttpContext{}}

// create makes the context of a stream. It panics if there is no such plugin
// context, or if the stream exists.
func (s *streamTable) create(contextID, pluginID uint32) {
	p := plugins[pluginID]
	if p == nil {
		panic("a stream of an unknown plugin context")
	}
	if s.byID[contextID] != nil {
		panic("a stream was created twice")
	}
	s.lastID, s.last = contextID, p.NewHttpContext(contextID)
	s.byID[contextID] = s.last
}

// of returns the context of a stream. It panics if there is none.
func (s *streamTable) of(contextID uint32) types.HttpContext {
	if s.lastID != contextID || s.last == nil {
		s.lastID, s.last = contextID, s.byID[contextID]
		if s.last == nil {
			panic("a callback for an unknown stream")
		}
	}
	return s.last
}

// remove forgets a stream and reports whether there was one.
func (s *streamTable) remove(contextID uint32) bool {
	if s.byID[contextID] == nil {
		return false
	}
	delete(s.byID, contextID)
	s.last = nil
	return true
}
