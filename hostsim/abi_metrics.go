package hostsim

// Functions on metrics. An id names a metric within one virtual machine; its two low bits are the type, as in Envoy, so
// that the type of an unknown id is known too. Source: Envoy, source/extensions/common/wasm/context.cc.

const metricTypeBits = 2

func callDefineMetric(v *vm, a []uint64) Status {
	name, ok := v.read(a[1], a[2])
	if !ok {
		return StatusInvalidMemoryAccess
	}
	kind := MetricKind(uint32(a[0]))
	if kind > MetricHistogram {
		return StatusBadArgument
	}
	// Each definition has an id of its own; those of one name and type lead to the same statistic.
	v.stats[kind] = append(v.stats[kind], v.host.metrics.define(kind, string(name)))
	id := uint32(len(v.stats[kind]))<<metricTypeBits | uint32(kind)
	if !v.putU32(a[3], id) {
		return StatusInvalidMemoryAccess
	}
	return StatusOK
}

// stat finds a metric by id.
func (v *vm) stat(id uint64) (*stat, Status) {
	kind := uint32(id) & (1<<metricTypeBits - 1)
	if MetricKind(kind) > MetricHistogram {
		return nil, StatusBadArgument
	}
	i := int(uint32(id)>>metricTypeBits) - 1
	if i < 0 || i >= len(v.stats[kind]) {
		return nil, StatusNotFound
	}
	return v.stats[kind][i], StatusOK
}

func callIncrementMetric(v *vm, a []uint64) Status {
	s, st := v.stat(a[0])
	if st != StatusOK {
		return st
	}
	return s.increment(int64(a[1]))
}

func callRecordMetric(v *vm, a []uint64) Status {
	s, st := v.stat(a[0])
	if st == StatusOK {
		s.record(a[1])
	}
	return st
}

func callGetMetric(v *vm, a []uint64) Status {
	if MetricKind(uint32(a[0])&(1<<metricTypeBits-1)) == MetricHistogram {
		return StatusBadArgument // defined or not
	}
	s, st := v.stat(a[0])
	if st != StatusOK {
		return st
	}
	if !v.putU64(a[1], s.value.Load()) {
		return StatusInvalidMemoryAccess
	}
	return StatusOK
}
