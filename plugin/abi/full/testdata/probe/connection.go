package main

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

type connection struct{ types.DefaultTcpContext }

func (*connection) OnNewConnection() types.Action {
	say("new connection")
	return types.ActionContinue
}

func (*connection) OnDownstreamData(size int, end bool) types.Action {
	data, err := proxywasm.GetDownstreamData(0, size)
	say("downstream data", string(data), end, err, proxywasm.AppendDownstreamData([]byte("!")))
	return types.ActionContinue
}

func (*connection) OnUpstreamData(size int, end bool) types.Action {
	data, err := proxywasm.GetUpstreamData(0, size)
	say("upstream data", string(data), end, err)
	if string(data) == "bye" {
		say("close", proxywasm.CloseDownstream())
	}
	return types.ActionContinue
}

func (*connection) OnDownstreamClose(by types.PeerType) { say("downstream close", by) }

func (*connection) OnUpstreamClose(by types.PeerType) { say("upstream close", by) }

func (*connection) OnStreamDone() { say("connection done") }
