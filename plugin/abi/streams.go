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

// streamTable holds the contexts of running streams. Hosts number contexts in
// turn, so that most streams find a slot of their own; one that meets a longer
// lived one there goes to the map.
type streamTable struct {
	slots    [256]streamSlot
	overflow map[uint32]types.HttpContext
}

type streamSlot struct {
	id      uint32
	context types.HttpContext // nil: the slot is free
}

var streams streamTable

// create makes the context of a stream. It panics if there is no such plugin
// context, or if the stream exists.
func (s *streamTable) create(contextID, pluginID uint32) {
	p := pluginOf(pluginID)
	if p == nil {
		panic("a stream of an unknown plugin context")
	}
	if s.find(contextID) != nil {
		panic("a stream was created twice")
	}
	context := p.NewHttpContext(contextID)
	if slot := &s.slots[contextID%uint32(len(s.slots))]; slot.context == nil {
		slot.id, slot.context = contextID, context
		return
	}
	if s.overflow == nil {
		s.overflow = map[uint32]types.HttpContext{}
	}
	s.overflow[contextID] = context
}

// find returns the context of a stream, or nil.
func (s *streamTable) find(contextID uint32) types.HttpContext {
	if slot := &s.slots[contextID%uint32(len(s.slots))]; slot.id == contextID && slot.context != nil {
		return slot.context
	}
	if len(s.overflow) == 0 {
		return nil
	}
	return s.overflow[contextID]
}

// of returns the context of a stream. It panics if there is none.
func (s *streamTable) of(contextID uint32) types.HttpContext {
	context := s.find(contextID)
	if context == nil {
		panic("a callback for an unknown stream")
	}
	return context
}

// remove forgets a stream and returns its context, nil if there was none.
func (s *streamTable) remove(contextID uint32) types.HttpContext {
	if slot := &s.slots[contextID%uint32(len(s.slots))]; slot.id == contextID && slot.context != nil {
		context := slot.context
		slot.context = nil
		return context
	}
	context := s.overflow[contextID]
	delete(s.overflow, contextID)
	return context
}
