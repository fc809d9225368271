package plugin

import (
	"errors"
	"strconv"

	"github.com/tetratelabs/proxy-wasm-go-sdk/proxywasm"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// discovery asks the gateway's admin interface for the hosts of clusters, for all
// pools of a configuration at once. The worker asks that holds the lease of the
// first pool: an answer costs the gateway's main thread up to 36 ms, and all
// workers see what one has put into the pools' records.
//
// At start, while pools are empty, every VM asks once, in its configure callback:
// none holds a lease yet, and requests wait for none.
type discovery struct {
	DiscoveryConfig
	path string
	// next is when to ask next, in ms.
	next int64
	// call is the question under way, 0 for none, and asked is when it was asked.
	call  uint32
	asked int64
	// warned paces the warnings.
	warned warning
}

const (
	// answerTimeout is how long the gateway waits for its own answer, in ms. Its
	// main thread may be compiling wasm for 3 s.
	answerTimeout = 5000
	// maxAnswer bounds an answer, in bytes: 1024 hosts are one megabyte.
	maxAnswer = 16 << 20
)

// Errors beside those of clusterMembers.
var (
	errStatus     = errors.New("the answer is no 200: is it the gateway's admin interface?")
	errAnswerSize = errors.New("the answer is empty, or longer than 16 MB")
)

func newDiscovery(c *Config) *discovery {
	if c.Discovery.AdminCluster == "" {
		return nil
	}
	return &discovery{DiscoveryConfig: c.Discovery, path: clustersPath(c.Pools)}
}

// clustersPath is what to ask for: the pools' clusters alone, for gateways that
// can tell them apart (Envoy 1.38 and later; others ignore the filter).
func clustersPath(pools []PoolConfig) string {
	const digits = "0123456789ABCDEF"
	path, pattern := "/clusters?format=json", ""
	for i, p := range pools {
		if p.Cluster == "" {
			return path
		}
		if i > 0 {
			pattern += "|"
		}
		pattern += `\Q` + p.Cluster + `\E`
	}
	pattern = "^(" + pattern + ")$"
	path += "&filter="
	for i := range len(pattern) {
		c := pattern[i]
		if c >= '0' && c <= '9' || c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c == '-' || c == '_' {
			path += pattern[i : i+1]
		} else {
			path += "%" + digits[c>>4:c>>4+1] + digits[c&15:c&15+1]
		}
	}
	return path
}

// discover asks if it is time to. It is for ticks of the worker that leads the
// first pool.
func (f *filter) discover(now int64) {
	d := f.discovery
	// A tick may come a little early.
	if early := f.pools[0].period / 2; now >= d.next-early && (d.call == 0 || now-d.asked > 2*answerTimeout) {
		f.ask(now)
	}
}

func (f *filter) ask(now int64) {
	d := f.discovery
	d.next, d.asked = now+d.Interval.Milliseconds(), now
	var err error
	if d.call, err = abi.HTTPGet(d.AdminCluster, d.path, answerTimeout); err != nil {
		f.undiscovered(f.pools[0], err, now)
	}
}

// OnHTTPCallResponse takes the answer to a call in: of the admin interface, or of etcd.
func (f *filter) OnHTTPCallResponse(call uint32, _, size int) {
	if d := f.discovery; d != nil && call == d.call {
		f.hosts(size)
		return
	}
	f.calls.answered(call, size)
}

// hosts takes the admin interface's answer in. One that tells nothing leaves the pools
// as they are.
func (f *filter) hosts(size int) {
	d := f.discovery
	d.call = 0
	now := milliseconds()
	answer, err := readAnswer(size)
	if err != nil {
		f.undiscovered(f.pools[0], err, now)
		return
	}
	defer abi.FreeHostMemory() // it may be large, and the next callback may be long in coming
	clusters, err := readClusters(answer)
	if err != nil {
		f.undiscovered(f.pools[0], err, now)
		return
	}
	leading := f.pools[0].lease.mine(now)
	for _, p := range f.pools {
		members, err := clusterMembers(clusters, p.Cluster, d.AdminCluster)
		if err != nil {
			f.undiscovered(p, err, now)
			continue
		}
		p.discovered(members, leading, now)
	}
}

var statusHeader = abi.NamesOf(":status")

func readAnswer(size int) (answer []byte, err error) {
	statusHeader.Find(abi.HTTPCallHeaders)
	switch {
	case statusHeader.Value(0) != "200":
		return nil, errStatus
	case size == 0 || size > maxAnswer:
		return nil, errAnswerSize
	}
	return abi.HTTPCallBody(size), nil
}

// undiscovered counts an answer that told nothing of a pool, and warns.
func (f *filter) undiscovered(p *pool, err error, now int64) {
	p.store.fault(faultDiscovery)
	if f.discovery.warned.due(now) {
		proxywasm.LogWarn("pinwheel: pool " + p.Name + ": the replicas stay as they are (" +
			strconv.Itoa(len(p.store.view.List)) + "): cluster " + quote(f.discovery.AdminCluster) + ": " + err.Error())
	}
}

// discovered makes the hosts that were found the pool's members. Only the second
// answer in a row without any is believed: name resolution fails at times, and a
// cluster that is really empty serves nobody meanwhile.
func (p *pool) discovered(members []policy.Member, leading bool, now int64) {
	if len(members) == 0 && !p.vanished {
		p.vanished = true
		return
	}
	p.vanished = len(members) == 0
	for i := range members {
		m := &members[i]
		if own, ok := p.overrides[m.Address]; ok {
			m.Weight, m.State = own.Weight, max(m.State, own.State)
		}
	}
	p.store.discovered(members, leading, now)
}
