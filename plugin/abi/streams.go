package abi

import (
	"slices"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

// Register hands the plugin to the SDK. It takes the place of the SDK's
// SetVMContext.
//
// The SDK keeps three maps for each stream and looks each callback up in them,
// which costs more than all of Pinwheel's decision. Here streams have one table.
// What the SDK needs its maps for, call-outs made by a stream, is not there. And a context
// serves one stream after another: after OnHttpStreamDone, which ends each, come the
// callbacks of the next.
func Register(vm types.VMContext) { proxywasm.SetVMContext(&pluginWatch{vm}) }

// pluginWatch learns which plugin contexts there are: streams are made by them.
type pluginWatch struct{ types.VMContext }

func (w *pluginWatch) NewPluginContext(contextID uint32) types.PluginContext {
	p := w.VMContext.NewPluginContext(contextID)
	addPlugin(contextID, p)
	return p
}

// plugins holds the plugin contexts: one, but for the time after an update and where
// several filters share a VM. The newest comes last.
var plugins []pluginSlot

type pluginSlot struct {
	id      uint32
	context types.PluginContext
}

func addPlugin(contextID uint32, p types.PluginContext) {
	plugins = append(plugins, pluginSlot{contextID, p})
}

func removePlugin(contextID uint32) {
	streams.forget(contextID)
	plugins = slices.DeleteFunc(plugins, func(s pluginSlot) bool { return s.id == contextID })
}

// pluginOf returns the plugin context with that id, or nil.
func pluginOf(contextID uint32) types.PluginContext {
	for i := len(plugins) - 1; i >= 0; i-- {
		if plugins[i].id == contextID {
			return plugins[i].context
		}
	}
	return nil
}

// streamTable holds the running streams. Hosts number contexts in turn, so that most
// streams find a slot of their own; one that meets a longer lived one there goes to the
// map.
type streamTable struct {
	slots    [256]stream
	overflow map[uint32]*stream
}

type stream struct {
	id     uint32
	plugin uint32 // 0: the slot is free
	// called says that the stream had a callback, and so has a context.
	called bool
	// context was made by the plugin context maker; it serves one stream after another.
	context types.HttpContext
	maker   uint32
}

var streams streamTable

// current is the stream whose callback runs.
var current uint32

// CurrentStream returns the context id of the stream whose callback runs.
func CurrentStream() uint32 { return current }

// Streams calls yield with the contexts of all streams that had a callback.
func Streams(yield func(types.HttpContext) bool) {
	for i := range streams.slots {
		if s := &streams.slots[i]; s.plugin != 0 && s.called && !yield(s.context) {
			return
		}
	}
	for _, s := range streams.overflow {
		if s.called && !yield(s.context) {
			return
		}
	}
}

func (s *streamTable) slot(id uint32) *stream { return &s.slots[id%uint32(len(s.slots))] }

// open opens a stream in its slot if that is free, and does nothing that may panic.
func (s *streamTable) open(id, plugin uint32) (ok bool) {
	slot := s.slot(id)
	if slot.plugin != 0 {
		return false
	}
	slot.id, slot.plugin, slot.called = id, plugin, false
	return true
}

// openBeside opens a stream whose slot another has. It panics if the stream is open.
func (s *streamTable) openBeside(id, plugin uint32) {
	if s.find(id) != nil {
		panic("a stream was created twice")
	}
	if s.overflow == nil {
		s.overflow = map[uint32]*stream{}
	}
	s.overflow[id] = &stream{id: id, plugin: plugin}
}

// find returns an open stream, or nil.
func (s *streamTable) find(id uint32) *stream {
	if slot := s.slot(id); slot.id == id && slot.plugin != 0 {
		return slot
	}
	if len(s.overflow) == 0 {
		return nil
	}
	return s.overflow[id]
}

// of returns the context of a stream. It panics if the stream is not open or there is no
// such plugin context.
func (s *streamTable) of(id uint32) types.HttpContext {
	open := s.find(id)
	if open == nil {
		panic("a callback for an unknown stream")
	}
	if open.maker != open.plugin {
		p := pluginOf(open.plugin)
		if p == nil {
			panic("a stream of an unknown plugin context")
		}
		open.context, open.maker = p.NewHttpContext(id), open.plugin
	}
	current, open.called = id, true
	return open.context
}

// end ends a stream, and is false if it was not open. A context that panics serves no
// other stream.
func (s *streamTable) end(id uint32) (ok bool) {
	open := s.find(id)
	if open == nil {
		return false
	}
	open.plugin = 0
	if len(s.overflow) > 0 && open != s.slot(id) {
		delete(s.overflow, id)
	}
	if open.called {
		maker := open.maker
		open.maker = 0
		open.context.OnHttpStreamDone()
		if open.plugin == 0 { // no other stream has come here meanwhile
			open.maker = maker
		}
	}
	return true
}

// forget drops the contexts that a plugin context has made and no open stream has.
func (s *streamTable) forget(plugin uint32) {
	for i := range s.slots {
		if slot := &s.slots[i]; slot.maker == plugin && slot.plugin == 0 {
			slot.context, slot.maker = nil, 0
		}
	}
}
