package replay

import "time"

// what is a kind of entry on the agenda.
type what uint8

const (
	stepEnds  what = iota // of replica index
	turnSent              // of session index
	turnComes             // to its engine, of session index
	admission             // of sessions, open loop
	scheduled             // event index
	returns               // replica index, after a failure
	resumes               // all engines, after a weight update
	wakes                 // router of gateway index
)

// entry is something that will happen. round tells an entry of a replica from those before it crashed.
type entry struct {
	at    time.Duration
	seq   uint64
	index int32
	round uint16
	what  what
}

// agenda is a heap of entries by time, those of one time in the order in which they were added.
type agenda struct {
	heap []entry
	seq  uint64
}

func (a *entry) before(b *entry) bool { return a.at < b.at || a.at == b.at && a.seq < b.seq }

// add takes O(log n), without allocation once the heap has grown.
func (a *agenda) add(at time.Duration, w what, index int, round uint16) {
	a.seq++
	a.heap = append(a.heap, entry{at, a.seq, int32(index), round, w})
	e, i := a.heap[len(a.heap)-1], len(a.heap)-1
	for i > 0 {
		parent := (i - 1) / 2
		if a.heap[parent].before(&e) {
			break
		}
		a.heap[i] = a.heap[parent]
		i = parent
	}
	a.heap[i] = e
}

// dropFirst removes the earliest entry, heap[0].
func (a *agenda) dropFirst() {
	last := len(a.heap) - 1
	a.heap[0] = a.heap[last]
	a.heap = a.heap[:last]
	a.sink()
}

// moveFirst puts the earliest entry off.
func (a *agenda) moveFirst(at time.Duration) {
	a.seq++
	a.heap[0].at, a.heap[0].seq = at, a.seq
	a.sink()
}

func (a *agenda) sink() {
	n := len(a.heap)
	if n == 0 {
		return
	}
	e, i := a.heap[0], 0
	for {
		child := 2*i + 1
		if child >= n {
			break
		}
		if child+1 < n && a.heap[child+1].before(&a.heap[child]) {
			child++
		}
		if e.before(&a.heap[child]) {
			break
		}
		a.heap[i] = a.heap[child]
		i = child
	}
	a.heap[i] = e
}
