package policy

// State says what a replica may be given.
type State uint8

const (
	// Active serves its sessions and takes new ones.
	Active State = iota
	// Draining serves its sessions and takes no new ones.
	Draining
	// Unhealthy serves nothing while another replica can.
	Unhealthy
	// Removed is no longer a member. It is kept until its last pin is gone, so
	// that open sessions always equal pins.
	Removed
	// Cooling is left alone because its answers failed. No member is given this
	// state and Replica.State never holds it: it is Replica.Condition while
	// Replica.Health says so.
	Cooling
)

var stateNames = [...]string{
	Active: "active", Draining: "draining", Unhealthy: "unhealthy", Removed: "removed", Cooling: "cooling",
}

// String returns the state's name as configuration and status spell it.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return "unknown"
}

// Replica is one upstream host with its load.
type Replica struct {
	// ID is never given twice within a pool: an address that is removed and
	// added again is another replica, and pins on the old one do not count.
	ID      uint32
	Address string
	// Rank is RankAddress(Address).
	Rank uint64
	// Weight is the replica's share of sessions relative to others, 1..65535.
	Weight uint32
	// State is what the replica's Member says, or Removed.
	State State
	// Drained says that Drain holds: the replica takes no new sessions, whatever
	// its Member says.
	Drained bool
	// Void marks a Removed replica whose sessions Reset ended.
	Void bool
	// Health is what its answers say.
	Health Health
	// Joining marks a replica that came or came back while sessions were open
	// and has not caught up with the least loaded of the others.
	Joining bool
	// Open is the number of sessions pinned to the replica.
	Open uint32
	// Placements counts the placements on the replica.
	Placements uint64
	// LastChosen is Replicas.Placements just after the replica was last chosen;
	// 0 means never.
	LastChosen uint64
	// RemovedAt is when the replica became Removed, in milliseconds of the
	// caller's clock; it means nothing in other states.
	RemovedAt int64
}

// Member is what configuration or discovery says of a replica.
type Member struct {
	Address string
	Weight  uint32 // 1..65535
	State   State  // Active, Draining or Unhealthy
}

// Replicas is the membership and load of one pool.
//
// Invariants: List is ascending by ID; no two replicas that are not Removed have
// one address; NextID is above every ID.
type Replicas struct {
	// Placements counts all placements, since Reset if there was one.
	Placements uint64
	NextID     uint32
	List       []Replica
}

// Place is Index where no replica was removed, which ok tells: ids begin at 1. Compilers
// inline it.
func (r *Replicas) Place(id uint32) (i int, ok bool) {
	i = int(id) - 1
	return i, uint(i) < uint(len(r.List)) && r.List[i].ID == id
}

// Index returns the position of the replica with that id, or -1.
// Cost: O(log n) once replicas were removed, O(1) before.
func (r *Replicas) Index(id uint32) int {
	if i, ok := r.Place(id); ok {
		return i
	}
	low, high := 0, len(r.List)
	for low < high {
		middle := (low + high) / 2
		if r.List[middle].ID < id {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low < len(r.List) && r.List[low].ID == id {
		return low
	}
	return -1
}

// Open returns the number of pins in the pool, those on Removed replicas
// included.
func (r *Replicas) Open() uint64 {
	var n uint64
	for i := range r.List {
		n += uint64(r.List[i].Open)
	}
	return n
}

// Reserve counts one placement at now on the replica at position i. If that
// ends its cool-down for a trial, the session is the trial.
func (r *Replicas) Reserve(i int, now int64) {
	r.Placements++
	c := &r.List[i]
	c.Placements++
	c.LastChosen = r.Placements
	r.Adopt(i, now)
}

// Adopt is Reserve for a session that another gateway has placed on the replica at
// position i: it is open here, and no placement of this pool.
func (r *Replicas) Adopt(i int, now int64) {
	r.Probe(i, now)
	c := &r.List[i]
	c.Open++
	if c.Joining && r.caughtUp(i) {
		c.Joining = false
	}
}

// Return takes n sessions off the replica with that id: reservations that were
// not used, or pins that are gone. It reports how many could not be taken off
// because the count would have gone below zero; for a replica that is no longer
// listed that is none, its count went with it.
func (r *Replicas) Return(id, n uint32) (short uint32) {
	i := r.Index(id)
	if i < 0 {
		return 0
	}
	c := &r.List[i]
	if n > c.Open {
		short = n - c.Open
	}
	c.Open -= n - short
	return short
}

// lessLoaded compares open sessions per weight; leaving is the id of a replica
// that is about to lose one session, 0 for none.
func lessLoaded(a, b *Replica, leaving uint32) bool {
	return load(a, leaving)*uint64(b.Weight) < load(b, leaving)*uint64(a.Weight)
}

func load(c *Replica, leaving uint32) uint64 {
	if c.ID == leaving && c.Open > 0 {
		return uint64(c.Open) - 1
	}
	return uint64(c.Open)
}
