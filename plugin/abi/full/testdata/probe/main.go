// Probe is a plugin as one would write it for TinyGo: it sets up in main, uses every
// call of the SDK, and says in the log what came of each. Its configuration is http,
// tcp, or panic.
package main

import (
	_ "github.com/pinwheel-proxy/pinwheel/plugin/abi/full"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"
)

func main() {
	if initialised != "by init" {
		panic("main ran before the variables were there")
	}
	proxywasm.LogInfo("main")
	proxywasm.SetVMContext(&vm{})
}

var initialised string

func init() { initialised = "by init" }

// say logs a call's results.
func say(call string, results ...any) {
	proxywasm.LogInfof("%s %v", call, results)
}

type vm struct{ types.DefaultVMContext }

func (*vm) OnVMStart(size int) types.OnVMStartStatus {
	config, err := proxywasm.GetVMConfiguration()
	say("vm_start", size, string(config), err)
	return true
}

func (*vm) NewPluginContext(uint32) types.PluginContext { return &plugin{} }

type plugin struct {
	types.DefaultPluginContext
	kind      string
	queue     uint32
	pending   bool
	counter   proxywasm.MetricCounter
	gauge     proxywasm.MetricGauge
	histogram proxywasm.MetricHistogram
	kept      []string // the paths of all requests
}

func (p *plugin) OnPluginStart(size int) types.OnPluginStartStatus {
	config, err := proxywasm.GetPluginConfiguration()
	say("configure", size, string(config), err)
	p.kind = string(config)
	say("tick period", proxywasm.SetTickPeriodMilliSeconds(1000))
	p.queue, err = proxywasm.RegisterSharedQueue("jobs")
	say("register queue", err)
	p.counter = proxywasm.DefineCounterMetric("probe.counter")
	p.gauge = proxywasm.DefineGaugeMetric("probe.gauge")
	p.histogram = proxywasm.DefineHistogramMetric("probe.histogram")
	return true
}

func (p *plugin) NewHttpContext(uint32) types.HttpContext {
	if p.kind == "tcp" {
		return nil
	}
	return &stream{plugin: p}
}

func (p *plugin) NewTcpContext(uint32) types.TcpContext { return &connection{} }

func (p *plugin) OnTick() {
	p.counter.Increment(2)
	p.gauge.Add(-3)
	p.histogram.Record(5)
	say("metrics", p.counter.Value(), p.gauge.Value())
	_, err := proxywasm.DispatchHttpCall("backend", [][2]string{{":method", "GET"}, {":path", "/"}, {":authority", "a"}},
		[]byte("ask"), nil, 500, func(headers, size, trailers int) {
			h, err := proxywasm.GetHttpCallResponseHeaders()
			body, err2 := proxywasm.GetHttpCallResponseBody(0, size)
			t, err3 := proxywasm.GetHttpCallResponseTrailers()
			say("answer", headers, trailers, h, string(body), t, err, err2, err3)
		})
	say("call", err)
}

func (p *plugin) OnQueueReady(queue uint32) {
	job, err := proxywasm.DequeueSharedQueue(queue)
	say("queue ready", queue == p.queue, string(job), err)
}

func (p *plugin) OnPluginDone() bool {
	if !p.pending {
		p.pending = true
		say("done, later")
		proxywasm.PluginDone()
		return false
	}
	return true
}
