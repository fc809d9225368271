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
)

var stateNames = [...]string{Active: "active", Draining: "draining", Unhealthy: "unhealthy", Removed: "removed"}

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
	State  State
	// Joining marks a replica that came while sessions were open and has not
	// caught up with the least loaded of the others.
	Joining bool
	// Open is the number of sessions pinned to the replica.
	Open uint32
	// LastChosen is Replicas.Placements just after the replica was last chosen;
	// 0 means never.
	LastChosen uint64
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
	// Placements counts all placements ever.
	Placements uint64
	NextID     uint32
	List       []Replica
}

// Index returns the position of the replica with that id, or -1.
// Cost: O(log n).
func (r *Replicas) Index(id uint32) int {
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

// Open returns the number of open sessions in the pool, those on Removed
// replicas included.
func (r *Replicas) Open() uint64 {
	var n uint64
	for i := range r.List {
		n += uint64(r.List[i].Open)
	}
	return n
}

// Panicking reports that no replica may take a session. Every member is then
// treated as eligible: a gateway that has just started reports all hosts
// unhealthy for seconds, and a named host beats none.
func (r *Replicas) Panicking() bool {
	for i := range r.List {
		if r.List[i].State == Active {
			return false
		}
	}
	return true
}

// places reports whether a replica in state s may take a new session.
func places(s State, panicking bool) bool {
	return s == Active || panicking && s != Removed
}

// keeps reports whether a replica in state s still serves its pins.
func keeps(s State, panicking bool) bool {
	return s == Draining || places(s, panicking)
}

// Reserve counts one placement on the replica at position i.
func (r *Replicas) Reserve(i int) {
	r.Placements++
	c := &r.List[i]
	c.Open++
	c.LastChosen = r.Placements
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

// caughtUp reports whether the joining replica at i is as loaded as the least
// loaded of the replicas that are not joining.
func (r *Replicas) caughtUp(i int) bool {
	alone := true
	for j := range r.List {
		o := &r.List[j]
		if o.State != Active || o.Joining {
			continue
		}
		if !lessLoaded(&r.List[i], o, 0) {
			return true
		}
		alone = false
	}
	return alone
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

// Apply makes the members the pool's membership. A replica that stays keeps its
// id and counts, whatever its place in the list; one that goes becomes Removed;
// one that comes gets a new id. Applying the same members again changes nothing.
// It reports whether anything changed. Members must have distinct addresses.
func (r *Replicas) Apply(members []Member) (changed bool) {
	hadSessions := r.Open() > 0
	at := make(map[string]int, len(r.List))
	for i := range r.List {
		if r.List[i].State != Removed {
			at[r.List[i].Address] = i
		}
	}
	for _, m := range members {
		i, ok := at[m.Address]
		if !ok {
			r.add(m, hadSessions)
			changed = true
			continue
		}
		delete(at, m.Address)
		if c := &r.List[i]; c.Weight != m.Weight || c.State != m.State {
			c.Weight, c.State = m.Weight, m.State
			changed = true
		}
	}
	for _, i := range at {
		r.List[i].State, r.List[i].Joining = Removed, false
		changed = true
	}
	return changed
}

func (r *Replicas) add(m Member, joining bool) {
	// Id 0 means "no replica" elsewhere, so ids start at 1.
	r.NextID = max(r.NextID, 1)
	r.List = append(r.List, Replica{
		ID: r.NextID, Address: m.Address, Rank: RankAddress(m.Address),
		Weight: m.Weight, State: m.State, Joining: joining,
	})
	r.NextID++
}

// Forget drops Removed replicas that hold no pin any more and reports whether
// there were any. Without it they would stay in List for good: call it now and
// then, where nothing else refers to their ids.
func (r *Replicas) Forget() bool {
	kept := r.List[:0]
	for _, c := range r.List {
		if c.State != Removed || c.Open > 0 {
			kept = append(kept, c)
		}
	}
	if len(kept) == len(r.List) {
		return false
	}
	r.List = kept
	return true
}
