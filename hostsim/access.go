package hostsim

import "fmt"

// AccessKind says what a host call does with what it touches.
type AccessKind uint8

const (
	// AccessOwn touches nothing that another worker could see: headers, logs, time, random numbers.
	AccessOwn AccessKind = iota
	// AccessRead reads.
	AccessRead
	// AccessAdd adds to a number, whose final value does not depend on the order of additions.
	AccessAdd
	// AccessWrite is everything else.
	AccessWrite
)

// String returns own, read, add or write.
func (k AccessKind) String() string { return [...]string{"own", "read", "add", "write"}[k&3] }

// Access is one step of an interleaved run: a host call and what it touches.
type Access struct {
	// Worker is the index of the worker that makes it, or MainThread.
	Worker int
	// Call is the function, such as env.proxy_get_shared_data.
	Call string
	// On names what it touches: "data KEY", "queues", "metric NAME" or "calls"; empty for AccessOwn.
	On string
	// Kind is what it does with that.
	Kind AccessKind
	// Status is what it was answered, StatusOK as long as it was not.
	Status Status
}

// String is a line such as "worker 1 env.proxy_set_shared_data (write data users): CAS_MISMATCH".
func (a Access) String() string {
	who := ThreadName(a.Worker)
	if a.Kind == AccessOwn {
		return fmt.Sprintf("%s %s: %v", who, a.Call, a.Status)
	}
	return fmt.Sprintf("%s %s (%v %s): %v", who, a.Call, a.Kind, a.On, a.Status)
}

// Conflicts reports whether the order of a and b matters: both touch the same thing, and they are neither two reads nor
// two additions. A write to shared data that may be refused counts as one that is not, and so the answer does not depend
// on the state in which it is asked.
func (a Access) Conflicts(b Access) bool {
	switch {
	case a.Kind == AccessOwn || b.Kind == AccessOwn || a.On != b.On:
		return false
	case a.Kind == b.Kind:
		return a.Kind == AccessWrite
	}
	return true
}

// touch says what a call touches, before it runs.
type touch func(v *vm, args []uint64) (kind AccessKind, on string)

// touches lists the functions that touch what workers share. All queues count as one thing, for a message also changes
// what its listener finds in Worker.RunDue. So do all requests to upstreams, for what answers them (Config.HTTPCall) may
// depend on their order, and foreign functions with them.
var touches = map[string]touch{
	"proxy_get_shared_data": touchData(AccessRead),
	"proxy_set_shared_data": touchData(AccessWrite),

	"proxy_register_shared_queue": touchOne(AccessWrite, "queues"),
	"proxy_resolve_shared_queue":  touchOne(AccessRead, "queues"),
	"proxy_enqueue_shared_queue":  touchOne(AccessWrite, "queues"),
	"proxy_dequeue_shared_queue":  touchOne(AccessWrite, "queues"),

	"proxy_increment_metric": touchMetric(AccessAdd),
	"proxy_record_metric":    touchMetric(AccessWrite),
	"proxy_get_metric":       touchMetric(AccessRead),

	"proxy_http_call":             touchOne(AccessWrite, "calls"),
	"proxy_grpc_call":             touchOne(AccessWrite, "calls"),
	"proxy_grpc_stream":           touchOne(AccessWrite, "calls"),
	"proxy_grpc_send":             touchOne(AccessWrite, "calls"),
	"proxy_call_foreign_function": touchOne(AccessWrite, "calls"),
}

func touchOne(kind AccessKind, on string) touch {
	return func(*vm, []uint64) (AccessKind, string) { return kind, on }
}

func touchData(kind AccessKind) touch {
	return func(v *vm, a []uint64) (AccessKind, string) {
		key, ok := v.read(a[0], a[1])
		if !ok {
			return AccessOwn, ""
		}
		return kind, "data " + string(key)
	}
}

// touchMetric knows that records of counters and histograms add up.
func touchMetric(kind AccessKind) touch {
	return func(v *vm, a []uint64) (AccessKind, string) {
		s, st := v.stat(a[0])
		if st != StatusOK {
			return AccessOwn, ""
		}
		if kind == AccessWrite && s.kind != MetricGauge {
			return AccessAdd, "metric " + s.name
		}
		return kind, "metric " + s.name
	}
}
