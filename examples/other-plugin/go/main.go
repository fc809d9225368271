// Ask is a plugin that asks the cluster "auth" about each request, and lets it pass when the answer is 200.
package main

import (
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	_ "github.com/pinwheel-proxy/pinwheel/plugin/abi/full" // builds the SDK with official Go
)

func main() { proxywasm.SetVMContext(&vm{}) }

type vm struct{ types.DefaultVMContext }

// NewPluginContext is called for each configuration.
func (*vm) NewPluginContext(uint32) types.PluginContext { return &plugin{} }

type plugin struct{ types.DefaultPluginContext }

// NewHttpContext is called for each request.
func (*plugin) NewHttpContext(uint32) types.HttpContext { return &request{} }

type request struct{ types.DefaultHttpContext }

// OnHttpRequestHeaders holds the request back until auth has answered.
func (r *request) OnHttpRequestHeaders(int, bool) types.Action {
	user, _ := proxywasm.GetHttpRequestHeader("x-user")
	question := [][2]string{{":method", "GET"}, {":path", "/check"}, {":authority", "auth"}, {"x-user", user}}
	if _, err := proxywasm.DispatchHttpCall("auth", question, nil, nil, 1000, r.answered); err != nil {
		proxywasm.LogErrorf("cannot ask: %v", err)
		reply(503)
	}
	return types.ActionPause
}

// answered acts on what auth said. Where there is no answer, there are no headers.
func (*request) answered(_, _, _ int) {
	headers, _ := proxywasm.GetHttpCallResponseHeaders()
	for _, h := range headers {
		if h[0] == ":status" && h[1] == "200" {
			_ = proxywasm.ResumeHttpRequest()
			return
		}
	}
	reply(403)
}

func reply(status uint32) {
	if err := proxywasm.SendHttpResponse(status, nil, []byte("auth does not let you\n"), -1); err != nil {
		proxywasm.LogErrorf("cannot answer: %v", err)
	}
}
