package plugin

import (
	"encoding/binary"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// agreementState is what the workers of this gateway know together of a pool's agreement. It stands in shared data as
//
//	schema version u8, how many numbers follow u8, the times, revisions and numbers in their order (8 each), then for each replica
//	id u32, sessions u32; little-endian
//
// Times are in ms of the gateway's clock.
type agreementState struct {
	// announced is the revision of etcd up to which a worker takes the change log in, or has taken it in; done is the one up
	// to which that is over. What etcd said at a revision before announced may have been overtaken by a change whose entry
	// in the log found nothing to change here.
	announced, done int64
	// next is when to poll next, and polled when the last good poll was asked.
	next, polled int64
	// down is since when etcd is away, 0 while it answers, and recovered is when it last came back.
	down, recovered int64
	// epoch is when this gateway last had lost the thread of the change log: pins of before may be outdated.
	epoch int64
	// granted is the bucket whose leases are being granted ahead, and leases the number of those that were.
	granted, leases int64
	// from is the position of the replica from which on the next poll counts sessions.
	from int64
	// cluster is the id of the etcd that was polled last.
	cluster int64
	// reset is the revision of this gateway's own last reset.
	reset int64
	// fleet holds the sessions of all gateways by replica, as of the last poll, with those placed here since.
	fleet []fleetCount
}

type fleetCount struct{ replica, sessions uint32 }

const stateNumbers = 12

func (a *agreementState) numbers() [stateNumbers]*int64 {
	return [...]*int64{&a.announced, &a.done, &a.next, &a.polled, &a.down, &a.recovered, &a.epoch, &a.granted, &a.leases, &a.from, &a.cluster, &a.reset}
}

func (a *agreementState) encode(dst []byte) []byte {
	le := binary.LittleEndian
	dst = append(dst, schemaVersion, stateNumbers)
	for _, n := range a.numbers() {
		dst = le.AppendUint64(dst, uint64(*n))
	}
	for _, c := range a.fleet {
		dst = le.AppendUint32(le.AppendUint32(dst, c.replica), c.sessions)
	}
	return dst
}

// decode is false if b is no state of this schema.
func (a *agreementState) decode(b []byte) bool {
	const header = 2 + 8*stateNumbers
	if len(b) < header || b[0] != schemaVersion || b[1] != stateNumbers || (len(b)-header)%8 != 0 {
		return false
	}
	le := binary.LittleEndian
	for i, n := range a.numbers() {
		*n = int64(le.Uint64(b[2+8*i:]))
	}
	a.fleet = a.fleet[:0]
	for b = b[header:]; len(b) > 0; b = b[8:] {
		a.fleet = append(a.fleet, fleetCount{le.Uint32(b), le.Uint32(b[4:])})
	}
	return true
}

// sessions returns those of all gateways on the replica with that id.
func (a *agreementState) sessions(id uint32) *uint32 {
	for i := range a.fleet {
		if a.fleet[i].replica == id {
			return &a.fleet[i].sessions
		}
	}
	a.fleet = append(a.fleet, fleetCount{replica: id})
	return &a.fleet[len(a.fleet)-1].sessions
}

// forget drops the counts of replicas that are gone.
func (a *agreementState) forget(r *policy.Replicas) {
	kept := a.fleet[:0]
	for _, c := range a.fleet {
		if r.Index(c.replica) >= 0 {
			kept = append(kept, c)
		}
	}
	a.fleet = kept
}

// read reads the state. It is false where shared data does not answer.
func (a *agreement) read() (cas uint32, ok bool) {
	value, cas, err := a.data.Get(a.key)
	if err != nil {
		return 0, a.store.fault(faultSharedData)
	}
	if len(value) == 0 {
		a.state = agreementState{fleet: a.state.fleet[:0]}
		return cas, true
	}
	if !a.state.decode(value) {
		return 0, a.store.fault(faultSchema)
	}
	return cas, true
}

// update writes the state as f changes it. f is asked anew when another worker was faster, and tells whether there is
// anything to write.
func (a *agreement) update(f func(*agreementState) bool) bool {
	for range maxTries {
		cas, ok := a.read()
		if !ok {
			return false
		}
		if !f(&a.state) {
			return true
		}
		a.buf = a.state.encode(a.buf[:0])
		if done := swap(a.data, &a.store.stats, a.key, a.buf, cas); done != casMismatch {
			return done == written
		}
	}
	return a.store.fault(faultCAS)
}
