package main

import (
	"runtime"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

type stream struct {
	types.DefaultHttpContext
	plugin *plugin
}

func (s *stream) OnHttpRequestHeaders(n int, end bool) types.Action {
	path, err := proxywasm.GetHttpRequestHeader(":path")
	all, err2 := proxywasm.GetHttpRequestHeaders()
	say("request headers", n, end, path, len(all), err, err2)
	// As plugins do: what the host gave is kept without copying, and more is asked for.
	s.plugin.kept = append(s.plugin.kept, path)
	for range 1000 {
		_, _ = proxywasm.GetHttpRequestHeader("x-filler")
	}
	switch path {
	case "/panic":
		var nothing map[string]int
		nothing["a"] = 1
	case "/reply":
		say("reply", proxywasm.SendHttpResponse(418, [][2]string{{"x-teapot", "yes"}}, []byte("short and stout"), -1))
		return types.ActionPause
	}
	say("set all", proxywasm.ReplaceHttpRequestHeaders(append(all, [2]string{"x-set", "1"})))
	say("add", proxywasm.AddHttpRequestHeader("x-add", "2"))
	say("replace", proxywasm.ReplaceHttpRequestHeader("x-replace", "3"))
	say("remove", proxywasm.RemoveHttpRequestHeader("x-remove"))
	say("set property", proxywasm.SetProperty([]string{"probe"}, []byte("mine")))
	property, err := proxywasm.GetProperty([]string{"request", "path"})
	say("property", string(property), err)
	s.shared(path)
	return types.ActionContinue
}

// shared uses what is not the stream's.
func (s *stream) shared(path string) {
	_, cas, err := proxywasm.GetSharedData("key")
	say("get absent", err)
	say("set", proxywasm.SetSharedData("key", []byte("value of "+path), cas))
	value, _, err := proxywasm.GetSharedData("key")
	say("get", string(value), err)
	queue, err := proxywasm.ResolveSharedQueue("", "jobs")
	say("resolve", queue == s.plugin.queue, err)
	say("enqueue", proxywasm.EnqueueSharedQueue(queue, []byte("job of "+path)))
	packed, err := proxywasm.CallForeignFunction("compress", []byte("text"))
	say("foreign", len(packed) > 0, err)
	unpacked, err := proxywasm.CallForeignFunction("uncompress", packed)
	say("foreign", string(unpacked), err)
}

func (s *stream) OnHttpRequestBody(size int, end bool) types.Action {
	body, err := proxywasm.GetHttpRequestBody(0, size)
	say("request body", string(body), end, err)
	say("body", proxywasm.PrependHttpRequestBody([]byte("<")), proxywasm.AppendHttpRequestBody([]byte(">")))
	return types.ActionContinue
}

func (s *stream) OnHttpRequestTrailers(n int) types.Action {
	t, err := proxywasm.GetHttpRequestTrailers()
	say("request trailers", n, t, err)
	return types.ActionContinue
}

func (s *stream) OnHttpResponseHeaders(n int, end bool) types.Action {
	h, err := proxywasm.GetHttpResponseHeaders()
	say("response headers", n, end, h, err)
	return types.ActionContinue
}

func (s *stream) OnHttpResponseBody(size int, end bool) types.Action {
	body, err := proxywasm.GetHttpResponseBody(0, size)
	say("response body", string(body), end, err, proxywasm.ReplaceHttpResponseBody([]byte("replaced")))
	return types.ActionContinue
}

func (s *stream) OnHttpResponseTrailers(n int) types.Action {
	t, err := proxywasm.GetHttpResponseTrailers()
	say("response trailers", n, t, err)
	return types.ActionContinue
}

func (s *stream) OnHttpStreamDone() {
	runtime.GC() // what only the plugin refers to must survive
	say("kept", s.plugin.kept)
	say("log", proxywasm.ResumeHttpRequest())
}
