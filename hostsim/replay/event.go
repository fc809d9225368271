package replay

import (
	"errors"
	"fmt"
	"time"
)

// ErrEvent is wrapped by what is wrong with an Event or its text.
var ErrEvent = errors.New("replay: event")

// EventKind is what happens to a fleet.
type EventKind string

const (
	// EventFail crashes a replica: what it had is broken off, and its cache is lost. It comes back after For, or never;
	// one that is away already stays away until the later of both ends.
	// Routers are not told; they see connections that break.
	EventFail EventKind = "fail"
	// EventJoin adds a replica, which gets the next number.
	EventJoin EventKind = "join"
	// EventDrain has a replica keep its sessions and take no new ones, EventUndrain ends that.
	EventDrain   EventKind = "drain"
	EventUndrain EventKind = "undrain"
	// EventRemove takes a replica out for good. It answers what it has.
	EventRemove EventKind = "remove"
	// EventUpdate copies new weights into all engines: they finish the step they are in, do nothing for For, and forget
	// their caches.
	EventUpdate EventKind = "update"
	// EventEtcdDown closes the port of the etcd that gateways agree through, EventEtcdHangs has it take requests and neither
	// do nor answer anything, for For, or for ever. See Etcd.
	EventEtcdDown  EventKind = "etcd_down"
	EventEtcdHangs EventKind = "etcd_hangs"
)

// Event is something that happens to the fleet at a time.
type Event struct {
	Kind EventKind
	// Replica is the replica's number, from 0: those of the start first, then those that join in the order in which they
	// do. Only for kinds that concern one replica that is there already.
	Replica int
	// At is when it happens first, after the start. Every is the time from one to the next; zero is once. Only EventUpdate
	// may repeat.
	At, Every time.Duration
	// For is how long a failed replica or etcd is away, zero for ever; or how long an update takes.
	For time.Duration
}

// numbered tells whether the kind concerns one replica that is there already.
func (k EventKind) numbered() bool {
	switch k {
	case EventFail, EventDrain, EventUndrain, EventRemove:
		return true
	}
	return false
}

// OfEtcd tells whether the kind concerns etcd, and not the fleet.
func (k EventKind) OfEtcd() bool { return k == EventEtcdDown || k == EventEtcdHangs }

func (k EventKind) known() bool {
	return k.numbered() || k == EventJoin || k == EventUpdate || k.OfEtcd()
}

// Validate tells what is wrong with the event, in a fleet of replicas.
func (e *Event) Validate(replicas int) error {
	bad := func(format string, args ...any) error {
		return fmt.Errorf("%w: %s: %s", ErrEvent, e.Kind, fmt.Sprintf(format, args...))
	}
	if !e.Kind.known() {
		return fmt.Errorf("%w: %q: fail, join, drain, undrain, remove, update, etcd_down or etcd_hangs", ErrEvent, string(e.Kind))
	}
	switch {
	case e.Kind.numbered() && (e.Replica < 0 || e.Replica >= replicas):
		return bad("there is no replica %d: 0 to %d", e.Replica, replicas-1)
	case !e.Kind.numbered() && e.Replica != 0:
		return bad("it concerns no single replica, but %d is named", e.Replica)
	case e.At < 0 || e.Every < 0 || e.For < 0:
		return bad("a time is less than zero")
	case max(e.At, e.Every, e.For) > maxClock:
		return bad("a time of more than 70 years")
	case e.Every > 0 && e.Kind != EventUpdate:
		return bad("only update may come every so often")
	case e.Every > 0 && e.Every < time.Millisecond:
		return bad("every %v: 1ms or more", e.Every)
	case e.For > 0 && e.Kind != EventUpdate && e.Kind != EventFail && !e.Kind.OfEtcd():
		return bad("it lasts no time: only fail, update, etcd_down and etcd_hangs do")
	}
	return nil
}

// ValidateSchedule checks all events of a schedule, for a fleet that begins with replicas, and that updates which repeat
// let engines work: nothing would ever end otherwise.
func ValidateSchedule(events []Event, replicas int) error {
	for i := range events {
		if events[i].Kind == EventJoin {
			replicas++
		}
	}
	if replicas > maxReplicas {
		return fmt.Errorf("%w: %d replicas with those that join: at most %d", ErrEvent, replicas, maxReplicas)
	}
	paused := 0.0 // share of the time
	for i := range events {
		e := &events[i]
		if err := e.Validate(replicas); err != nil {
			return err
		}
		if e.Every > 0 {
			paused += float64(e.For) / float64(e.Every)
		}
	}
	if paused >= 1 {
		return fmt.Errorf("%w: %s: updates that repeat leave no time between them: pause for less than from one to the next", ErrEvent, EventUpdate)
	}
	return nil
}
