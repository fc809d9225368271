package hostsim

// Counters is what a host or worker has counted since it started.
type Counters struct {
	// Callbacks counts calls into the module by export name.
	Callbacks map[string]uint64
	// HostCalls counts calls from the module by import name, such as env.proxy_log.
	HostCalls map[string]uint64
	// Unimplemented counts those host calls that no gateway has: a profile that links anything answers them UNIMPLEMENTED.
	Unimplemented map[string]uint64

	answers map[string]answerCounts // by import name
}

func (c *Counters) init() {
	if c.Callbacks == nil {
		c.Callbacks, c.HostCalls, c.Unimplemented = map[string]uint64{}, map[string]uint64{}, map[string]uint64{}
		c.answers = map[string]answerCounts{}
	}
}

// add counts in what v has counted.
func (c *Counters) add(v *vm) {
	c.init()
	for _, e := range v.all {
		if e.calls > 0 {
			c.Callbacks[e.name] += e.calls
		}
	}
	for _, b := range v.program.bindings {
		if n := v.hostCalls[b.index]; n > 0 {
			c.HostCalls[b.label] += n
			c.answers[b.label] = c.answers[b.label].plus(v.answers[b.index])
		}
		if n := v.unimplemented[b.index]; n > 0 {
			c.Unimplemented[b.label] += n
		}
	}
}

// clearCounts makes v count from zero.
func (v *vm) clearCounts() {
	for _, e := range v.all {
		e.calls = 0
	}
	clear(v.hostCalls)
	clear(v.unimplemented)
	clear(v.answers)
}

func (c *Counters) merge(other Counters) {
	c.init()
	for name, n := range other.Callbacks {
		c.Callbacks[name] += n
	}
	for name, n := range other.HostCalls {
		c.HostCalls[name] += n
	}
	for name, n := range other.answers {
		c.answers[name] = c.answers[name].plus(n)
	}
	for name, n := range other.Unimplemented {
		c.Unimplemented[name] += n
	}
}
