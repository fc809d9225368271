// Package plugin is Pinwheel's proxy-wasm filter: it keeps each session on the
// replica that already holds its KV cache. Package policy decides; this package
// reads requests, keeps pins and counts in the gateway's shared data, and tells
// the gateway the chosen host.
//
// All state of a configuration lives in its plugin context: a gateway that
// updates a configuration runs the new one in the same VM, beside streams of the
// old one.
package plugin

import (
	"math/rand/v2"
	"slices"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"
	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm/types"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// Register hands the plugin to the gateway. It is called once, before the gateway
// starts the VM.
func Register() {
	abi.Register(&vm{rotations: map[string]*rotations{}})
	abi.OnFault = stripTargets
}

// vm is what outlives a configuration.
type vm struct {
	types.DefaultVMContext
	rotations map[string]*rotations // by pool
}

func (v *vm) NewPluginContext(contextID uint32) types.PluginContext {
	return &filter{vm: v, id: contextID}
}

// rotationsOf returns the rotations of the pool of that name.
func (v *vm) rotationsOf(pool string) *rotations {
	o := v.rotations[pool]
	if o == nil {
		o = &rotations{}
		v.rotations[pool] = o
	}
	return o
}

// filter is one configuration in one VM.
type filter struct {
	types.DefaultPluginContext
	vm     *vm
	id     uint32 // of the context
	config *Config
	secret policy.Secret
	pools  []*pool
	only   *pool // if there is but one
	// discovery is nil where the replicas are configured.
	discovery *discovery
	// served is set when this VM has had a request.
	served bool
	bodies
	calls callouts
	// request, keyed and line are scratch.
	request request
	keyed   []byte
	line    []byte
}

// OnPluginStart reads the configuration. A bad one is refused with one line; the
// gateway then keeps the one it has.
func (f *filter) OnPluginStart(int) types.OnPluginStartStatus {
	text, _ := proxywasm.GetPluginConfiguration() // none is refused as empty
	config, err := ParseConfig(text)
	if err != nil {
		proxywasm.LogCritical(err.Error())
		return types.OnPluginStartStatusFailed
	}
	f.start(config)
	return types.OnPluginStartStatusOK
}

func (f *filter) start(config *Config) {
	f.config = config
	f.request.headerNames = newHeaderNames(config)
	f.reading = config.readsBodies()
	addTarget(config.Target.Header)
	data := &abi.SharedData{}
	secret, err := sharedSecret(data)
	if err != nil {
		proxywasm.LogError("pinwheel: shared data does not answer, sessions are not kept: " + err.Error())
	}
	if f.secret = secret; config.Agreement.Kind != agreementNone {
		f.secret = agreedSecret(config.Agreement)
	}
	if config.Admin.Path != "" && config.Admin.Secret == "" {
		proxywasm.LogWarn("pinwheel: admin.secret is empty: whoever reaches " + config.Admin.Path + " may drain and reset")
	}
	owner := rand.Uint64()
	for _, pc := range config.Pools {
		p := newPool(data, pc, config, owner)
		if config.Agreement.Kind == agreementEtcd && p.pins {
			p.agreement = newAgreement(data, p.store, pc, config, &f.calls, secret)
		}
		p.rotations = f.vm.rotationsOf(pc.Name)
		p.store.adopt(milliseconds(), 0)
		p.observe(milliseconds())
		if p.agreement != nil {
			p.agreement.begin(milliseconds())
		}
		f.pools = append(f.pools, p)
	}
	if len(f.pools) == 1 {
		f.only = f.pools[0]
	}
	if f.discovery = newDiscovery(config); f.discovery != nil && f.anyEmpty() {
		f.ask(milliseconds())
	}
	if err := proxywasm.SetTickPeriodMilliSeconds(uint32(config.tickPeriod().Milliseconds())); err != nil {
		proxywasm.LogError("pinwheel: the gateway gives no ticks, idle sessions are not swept: " + err.Error())
		f.reading = false // nothing would end a wait in vain
	}
}

// OnTick does the periodic work.
func (f *filter) OnTick() {
	now := milliseconds()
	f.resumeLate(now) // first: whatever else may fail, no request waits for ever
	f.resumeAsking(now)
	f.touchOpen(now)
	reluctance := idle
	if f.served {
		reluctance = serving
	}
	f.calls.giveUp(now)
	for i, p := range f.pools {
		if i == 0 {
			p.store.stats.faults[faultPanic] += newFaults()
		}
		if p.tick(now, reluctance) && i == 0 && f.discovery != nil {
			f.discover(now)
		}
	}
}

// anyEmpty reports whether a pool has no replicas.
func (f *filter) anyEmpty() bool {
	return slices.ContainsFunc(f.pools, func(p *pool) bool { return len(p.store.view.List) == 0 })
}

// touchOpen keeps pins alive whose turn has been running for long.
func (f *filter) touchOpen(now int64) {
	for context := range abi.Streams {
		if t, ok := context.(*turn); ok && t.filter == f && t.kept && now-t.touched > t.pool.store.timeout/16 {
			t.touched = now
			t.pool.touch(t.key.Hash, t.decision.Replica, now)
		}
	}
}

// NewHttpContext returns the context of a stream, and of others after it.
func (f *filter) NewHttpContext(uint32) types.HttpContext { return &turn{filter: f} }

// poolOf returns the pool that serves the request, or nil.
func (f *filter) poolOf() *pool {
	if f.only != nil {
		return f.only
	}
	cluster, err := proxywasm.GetProperty([]string{"xds", "cluster_name"})
	if err != nil {
		return nil
	}
	for _, p := range f.pools {
		if p.Cluster == string(cluster) {
			return p
		}
	}
	return nil
}

func milliseconds() int64 { return abi.Nanotime() / 1e6 }

// reportedFaults is how many panics of this VM were counted in a metric. It is
// the VM's own, whatever configurations it runs.
var reportedFaults uint64

func newFaults() uint64 {
	n := abi.Faults() - reportedFaults
	reportedFaults += n
	return n
}

// targetHeaders are the target headers of all configurations of this VM, for a callback
// that panicked before it knew its own.
var targetHeaders []string

func addTarget(header string) {
	for _, t := range targetHeaders {
		if t == header {
			return
		}
	}
	targetHeaders = append(targetHeaders, header)
}

// stripTargets keeps a client from steering by way of a fault.
func stripTargets(callback string, _ uint32) {
	if callback != "proxy_on_request_headers" {
		return
	}
	for _, header := range targetHeaders {
		_ = proxywasm.RemoveHttpRequestHeader(header)
	}
}
