package suite

import (
	"slices"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// Coverage gathers which callbacks and host calls the cases of one or more suites reached. The zero value is ready; a nil
// one gathers nothing.
type Coverage struct {
	Modules  []string
	exports  []string // callbacks that the modules have
	imports  []string // host calls that they import
	counters hostsim.Counters
}

// module notes what a module has.
func (c *Coverage) module(path string, wasm []byte) {
	if c == nil || slices.Contains(c.Modules, path) {
		return
	}
	report, err := hostsim.Inspect(wasm)
	if err != nil {
		return
	}
	c.Modules = append(c.Modules, path)
	for _, e := range report.Exports {
		if e.Callback && !slices.Contains(c.exports, e.Name) {
			c.exports = append(c.exports, e.Name)
		}
	}
	for _, i := range report.Imports {
		if name := i.Module + "." + i.Name; !slices.Contains(c.imports, name) {
			c.imports = append(c.imports, name)
		}
	}
}

func (c *Coverage) add(h *hostsim.Host) {
	if c == nil {
		return
	}
	n := h.Counters()
	merge := func(into *map[string]uint64, from map[string]uint64) {
		if *into == nil {
			*into = map[string]uint64{}
		}
		for name, count := range from {
			(*into)[name] += count
		}
	}
	merge(&c.counters.Callbacks, n.Callbacks)
	merge(&c.counters.HostCalls, n.HostCalls)
}

// Kinds of CoverageLine.
const (
	KindCallback = "callback"
	KindHostCall = "host call"
)

// CoverageLine is one callback of the module, or one host call that it imports.
type CoverageLine struct {
	// Kind is KindCallback or KindHostCall.
	Kind string `json:"kind"`
	// Name is an export's, or an import's with its module.
	Name string `json:"name"`
	// Calls is how often it was called, over all virtual machines. Zero means never.
	Calls uint64 `json:"calls"`
}

// Lines are all callbacks, then all host calls, each sorted by name. A nil coverage has none.
func (c *Coverage) Lines() (lines []CoverageLine) {
	if c == nil {
		return nil
	}
	for _, name := range slices.Sorted(slices.Values(c.exports)) {
		lines = append(lines, CoverageLine{KindCallback, name, c.counters.Callbacks[name]})
	}
	for _, name := range slices.Sorted(slices.Values(c.imports)) {
		lines = append(lines, CoverageLine{KindHostCall, name, c.counters.HostCalls[name]})
	}
	return lines
}
