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
// What the SDK needs its maps for, call-outs made by a stream, is not there.
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
	id      uint32
	plugin  uint32            // 0: the slot is free
	context types.HttpContext // nil before the first callback
}

var streams streamTable

func (s *streamTable) slot(id uint32) *stream { return &s.slots[id%uint32(len(s.slots))] }

// open opens a stream in its slot if that is free, and does nothing that may panic.
func (s *streamTable) open(id, plugin uint32) (ok bool) {
	slot := s.slot(id)
	if slot.plugin != 0 {
		return false
	}
	slot.id, slot.plugin = id, plugin
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

// of returns the context of a stream, which it makes at the first callback. It panics if
// the stream is not open or there is no such plugin context.
func (s *streamTable) of(id uint32) types.HttpContext {
	open := s.find(id)
	if open == nil {
		panic("a callback for an unknown stream")
	}
	if open.context == nil {
		p := pluginOf(open.plugin)
		if p == nil {
			panic("a stream of an unknown plugin context")
		}
		open.context = p.NewHttpContext(id)
	}
	return open.context
}

// close closes a stream and returns its context, nil if it had no callback. ok is false
// if it was not open.
func (s *streamTable) close(id uint32) (context types.HttpContext, ok bool) {
	open := s.find(id)
	if open == nil {
		return nil, false
	}
	context = open.context
	if open == s.slot(id) {
		open.plugin, open.context = 0, nil
	} else {
		delete(s.overflow, id)
	}
	return context, true
}
