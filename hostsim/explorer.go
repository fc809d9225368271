package hostsim

import (
	"fmt"
	"maps"
	"slices"
)

// explorer chooses the schedules of an exploration, depth first, by running each anew from the start.
//
//  1. nodes[i] is the state before step i of the current schedule; nodes[i].chosen is who made step i.
//  2. A worker is in a node's sleep set if everything that begins with its step has been seen: at that node, or at an
//     earlier one with only steps in between that do not conflict with it.
type explorer struct {
	unpruned bool
	nodes    []*node
	depth    int  // steps of the current schedule that have been made
	asleep   bool // the current schedule repeats another from some node on
}

// node is one state of the current schedule.
type node struct {
	next   map[int]Access // by worker, the step that it makes next; those that are done are missing
	todo   map[int]bool   // workers whose step is to be tried here
	sleep  map[int]bool
	chosen int
	clock  map[int]int // of the chosen step: by worker, how many of its steps happen before it or are it
	count  int         // of the chosen step: how many steps its worker has made, with this one
}

// begin starts the next schedule.
func (e *explorer) begin() { e.depth, e.asleep = 0, false }

// choose picks who goes on. Beyond the nodes that the last schedule shares with this one it makes new ones.
func (e *explorer) choose(ready []*player) (*player, error) {
	if e.asleep {
		return ready[0], nil
	}
	next := make(map[int]Access, len(ready))
	for _, p := range ready {
		next[p.worker.index] = p.next
	}
	if e.depth < len(e.nodes) {
		if want := e.nodes[e.depth].next; !maps.Equal(next, want) {
			return nil, fmt.Errorf("%w: at step %d the workers wait before %v, and in an earlier run with the same choices waited before %v",
				ErrNotRepeatable, e.depth, next, want)
		}
	} else if !e.add(next) {
		e.asleep = true
		return ready[0], nil
	}
	n := e.nodes[e.depth]
	if e.depth == len(e.nodes)-1 { // nodes before are as they were
		e.step(n)
	}
	e.depth++
	i := slices.IndexFunc(ready, func(p *player) bool { return p.worker.index == n.chosen })
	return ready[i], nil
}

// add makes the node of a state that is new, and is false when every step from there has been seen.
func (e *explorer) add(next map[int]Access) bool {
	n := &node{next: next, todo: map[int]bool{}, sleep: map[int]bool{}}
	if len(e.nodes) > 0 && !e.unpruned {
		last := e.nodes[len(e.nodes)-1]
		for w := range last.sleep {
			if !last.next[w].Conflicts(last.next[last.chosen]) {
				n.sleep[w] = true
			}
		}
	}
	awake := slices.DeleteFunc(slices.Sorted(maps.Keys(next)), func(w int) bool { return n.sleep[w] })
	if len(awake) == 0 {
		return false
	}
	n.chosen = awake[0]
	n.todo[n.chosen] = true
	if e.unpruned {
		for _, w := range awake {
			n.todo[w] = true
		}
	}
	e.nodes = append(e.nodes, n)
	return true
}

// step sets the clock of the step that is about to be made, the last one: what its worker did before, and every step that
// it conflicts with, with all that is before those. Where nothing but the conflict itself orders such a step before this
// one, the two race, and the other order is to be seen too.
func (e *explorer) step(n *node) {
	me, access := n.chosen, n.next[n.chosen]
	n.clock = map[int]int{}
	for i := e.depth - 1; i >= 0; i-- {
		if e.nodes[i].chosen == me {
			maps.Copy(n.clock, e.nodes[i].clock)
			break
		}
	}
	n.count = n.clock[me] + 1
	var races []int
	for i := e.depth - 1; i >= 0; i-- {
		earlier := e.nodes[i]
		if earlier.chosen == me || !earlier.next[earlier.chosen].Conflicts(access) {
			continue
		}
		if !earlier.before(n) {
			races = append(races, i)
		}
		for w, count := range earlier.clock {
			n.clock[w] = max(n.clock[w], count)
		}
	}
	n.clock[me] = n.count
	if !e.unpruned {
		for _, i := range races {
			e.reverse(i)
		}
	}
}

// before reports whether n's step happens before that of a later node.
func (n *node) before(later *node) bool { return later.clock[n.chosen] >= n.count }

// reverse sees to it that the last step comes before step i in some schedule. What is to come ahead of step i there is v:
// all steps since that do not follow from it, and the last one. Any worker that can make the first of these will do.
func (e *explorer) reverse(i int) {
	at := e.nodes[i]
	var v []*node
	var first []int
	for j := i + 1; j <= e.depth; j++ {
		n := e.nodes[j]
		if j < e.depth && at.before(n) {
			continue
		}
		if !slices.ContainsFunc(v, func(earlier *node) bool { return earlier.before(n) }) {
			if at.todo[n.chosen] || at.sleep[n.chosen] {
				return
			}
			first = append(first, n.chosen)
		}
		v = append(v, n)
	}
	at.todo[first[0]] = true
}

// next goes back to the last node at which another step is to be tried, and is false when there is none.
func (e *explorer) next() bool {
	for len(e.nodes) > 0 {
		n := e.nodes[len(e.nodes)-1]
		n.sleep[n.chosen] = true
		for _, w := range slices.Sorted(maps.Keys(n.todo)) {
			if !n.sleep[w] {
				n.chosen = w
				return true
			}
		}
		e.nodes = e.nodes[:len(e.nodes)-1]
	}
	return false
}
