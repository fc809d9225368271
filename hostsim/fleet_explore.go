package hostsim

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

const (
	// DefaultOrderLimit is Orders.Limit's default.
	DefaultOrderLimit = 1_000_000
	// DefaultOrderLength is Orders.Length's default.
	DefaultOrderLength = 100
)

// Event is something that can happen to a fleet: a request, a tick, an answer, an outage.
type Event struct {
	// Name tells it apart from the others.
	Name string
	// Times is how often it may happen in one order. Zero means once.
	Times int
	// Group makes events of one group share the Times of the first of them. Empty is a group of its own.
	Group string
	// Ready reports whether it can happen now. Nil is always.
	Ready func() bool
	// Do makes it happen.
	Do func()
	// Everything has it count as part of everything, where Do looks at more than it makes run.
	Everything bool
}

// Orders says what Fleet.Explore runs.
type Orders struct {
	Events []Event
	// Before runs ahead of each order, on a fleet that has been set back: for the test's own variables, and for what comes
	// before the events. Nil does nothing.
	Before func()
	// Check judges the state after each event. What it changes it changes as part of the event, such as a stream that it ends.
	// Nil finds fault with nothing but panics.
	Check func() error
	// End judges what becomes of a fleet to which nothing more happens: it may have held calls answered and time pass, and
	// look then. Nil finds no fault.
	End func() error
	// EndWhen says in which states End is asked. Where it would but bring about events that are ready anyway, as while calls
	// are held, it saves as many runs. Nil is in all.
	EndWhen func() bool
	// Length bounds the events of one order. Zero means DefaultOrderLength.
	Length int
	// Limit bounds how often the fleet is set back. Zero means DefaultOrderLimit.
	Limit int
	// Unpruned runs every order instead of one for each way to a state and each event that can follow.
	Unpruned bool
}

// ExploredOrders says how far an exploration came.
type ExploredOrders struct {
	// States is the number of different ones that were seen, and Events that of events out of them.
	States, Events int
	// Runs is how often the fleet was set back.
	Runs int
	// Length is the number of events of the longest order.
	Length int
	// Cut is the number of states out of which no event was run for Orders.Length.
	Cut int
}

// String is a line for a test's log.
func (e ExploredOrders) String() string {
	return fmt.Sprintf("%d states and %d events out of them, in orders of up to %d events of which %d were cut, %d runs",
		e.States, e.Events, e.Length, e.Cut, e.Runs)
}

// OrderError is an order that failed. It unwraps to what Check or End returned, or to an error of a panic's text.
type OrderError struct {
	// Events are the names, in order: Fleet.Play with them, from the same state, repeats it.
	Events []string
	// AtEnd is set where End found the fault.
	AtEnd bool
	// Notes are what calls said on the way, by the number of the event; the last are End's.
	Notes [][]string
	// Err is what was wrong.
	Err error
}

// shownNotes bounds the notes that Error shows of one event.
const shownNotes = 12

// Error has what was wrong, and the events, one a line, each with what was called and answered.
func (e *OrderError) Error() string {
	var b strings.Builder
	fmt.Fprint(&b, e.Err)
	for i, name := range append(slices.Clone(e.Events), "the end") {
		if i < len(e.Events) || e.AtEnd {
			fmt.Fprintf(&b, "\n  %s", name)
		}
		if i < len(e.Notes) {
			for j, n := range e.Notes[i] {
				if j == shownNotes {
					fmt.Fprintf(&b, "\n      and %d more", len(e.Notes[i])-j)
					break
				}
				fmt.Fprintf(&b, "\n      %s", n)
			}
		}
	}
	return b.String()
}

// Unwrap returns Err.
func (e *OrderError) Unwrap() error { return e.Err }

// Explore runs a fleet under every order of events, each order as long as it can get, checks the state after each event, and
// from each state what becomes of the fleet when nothing more happens. Before each order it sets the fleet back to the state
// in which it was called (see Snapshot), and once more at the end. It returns nil when all have passed, ErrUnexplored where
// Limit was reached, or ErrNotRepeatable; or else an *OrderError, from which events have been left out as long as what
// remained failed too, and then leaves the fleet as that order has left it.
//
// The grain is the event: what threads of one host do to each other is for Host.Explore. An order is not followed any
// further where it leads to a state that has been seen: where each host, each answer of a call and the service has been
// part of the same events in the same order before (Mazurkiewicz traces; that every state is kept once and every event out
// of it still happens is Godefroid's state-space caching). What an event is part of is found out: the hosts that it made
// run, the calls that it made, carried out or answered. Where it moved the clock, made a call that no HeldCalls took, or
// made nothing run at all, as one that sets the service's faults, it counts as part of everything. What the test's functions
// keep from one event to another must therefore not depend on the order of events that have no part in common, such as a
// list of what all hosts did would; what a check sees in the moment may.
//
// The cost is that of setting back all hosts (Host.Restore) and of all events from the start for each event out of a state
// but one, and as much for End: some hundred orders a second for two hosts of a plugin written in Go.
func (f *Fleet) Explore(x Orders) (ExploredOrders, error) {
	start, err := f.Snapshot()
	if err != nil {
		return ExploredOrders{}, err
	}
	x.Limit, x.Length = cmp.Or(x.Limit, DefaultOrderLimit), cmp.Or(x.Length, DefaultOrderLength)
	if err := x.check(); err != nil {
		return ExploredOrders{}, err
	}
	e := &orderExplorer{fleet: f, orders: &x, start: start, seen: map[digest]bool{}}
	err = e.run()
	var failed *OrderError
	if errors.As(err, &failed) {
		return e.done, e.shorten(failed)
	}
	return e.done, cmp.Or(err, f.Restore(start))
}

// Play runs one order from the fleet's state as it is, and then End, where atEnd is set: what OrderError names. It returns an
// *OrderError for what failed, or ErrNotRepeatable where an event is not ready.
func (f *Fleet) Play(x Orders, atEnd bool, events ...string) error {
	if err := x.check(); err != nil {
		return err
	}
	r, err := f.begin(&x)
	defer r.stop()
	for _, name := range events {
		if err != nil {
			break
		}
		i := slices.IndexFunc(x.Events, func(e Event) bool { return e.Name == name })
		if i < 0 || !slices.Contains(r.ready(), i) {
			return fmt.Errorf("%w: %q is not ready", ErrNotRepeatable, name)
		}
		err = r.do(i)
	}
	if err == nil && atEnd {
		err = r.end()
	}
	return err
}

func (x *Orders) check() error {
	names := map[string]bool{}
	for _, e := range x.Events {
		if e.Name == "" || e.Do == nil || names[e.Name] {
			return fmt.Errorf("%w: an event needs a name of its own, not %q, and something to do", ErrConfig, e.Name)
		}
		names[e.Name] = true
	}
	return nil
}

// orderExplorer goes through the orders depth first, by running each anew from the start.
type orderExplorer struct {
	fleet  *Fleet
	orders *Orders
	start  *FleetSnapshot
	seen   map[digest]bool
	nodes  []orderNode
	done   ExploredOrders
}

// orderNode is a state of the current order.
type orderNode struct {
	ready []int // events, of which the one at index at is next
	at    int   // -1 is that nothing happens any more
}

func (e *orderExplorer) run() error {
	for {
		if e.done.Runs == e.orders.Limit {
			return fmt.Errorf("%w: the limit is %d runs", ErrUnexplored, e.orders.Limit)
		}
		if err := e.fleet.Restore(e.start); err != nil {
			return err
		}
		e.done.Runs++
		if err := e.order(); err != nil {
			return err
		}
		for {
			if len(e.nodes) == 0 {
				return nil
			}
			last := &e.nodes[len(e.nodes)-1]
			if last.at++; last.at < len(last.ready) {
				break
			}
			e.nodes = e.nodes[:len(e.nodes)-1]
		}
	}
}

// order runs one: the events of its nodes, of which the last is new, and then on to new states.
func (e *orderExplorer) order() error {
	r, err := e.fleet.begin(e.orders)
	defer r.stop()
	if err != nil {
		return err
	}
	for _, n := range e.nodes {
		if ready := r.ready(); !slices.Equal(ready, n.ready) {
			return fmt.Errorf("%w: after %q other events are ready than in an earlier run", ErrNotRepeatable, r.names)
		}
		if err := r.do(n.ready[n.at]); err != nil {
			return err
		}
	}
	if len(e.nodes) > 0 {
		e.done.Events++
	}
	for {
		e.done.Length = max(e.done.Length, len(r.names))
		if key := r.key(); !e.orders.Unpruned {
			if e.seen[key] {
				return nil
			}
			e.seen[key] = true
		}
		e.done.States++
		n := orderNode{ready: r.ready(), at: -1}
		if len(r.names) == e.orders.Length && len(n.ready) > 0 {
			n.ready = nil
			e.done.Cut++
		}
		if e.orders.End != nil && (e.orders.EndWhen == nil || e.orders.EndWhen()) {
			e.nodes = append(e.nodes, n)
			return r.end()
		}
		if len(n.ready) == 0 {
			return nil
		}
		n.at = 0
		e.nodes = append(e.nodes, n)
		if err := r.do(n.ready[0]); err != nil {
			return err
		}
		e.done.Events++
	}
}

// shorten leaves events out as long as what remains fails too.
func (e *orderExplorer) shorten(failed *OrderError) error {
	play := func(events []string) *OrderError {
		if err := e.fleet.Restore(e.start); err != nil {
			return nil
		}
		var again *OrderError
		errors.As(e.fleet.Play(*e.orders, failed.AtEnd, events...), &again)
		return again
	}
	for i := len(failed.Events) - 1; i >= 0; i-- {
		if i >= len(failed.Events) {
			continue // it failed earlier
		}
		if again := play(slices.Delete(slices.Clone(failed.Events), i, i+1)); again != nil {
			failed = again
		}
	}
	if again := play(failed.Events); again != nil {
		return again
	}
	return fmt.Errorf("%w: what failed once did not again: %w", ErrNotRepeatable, failed)
}

// digest stands for everything that a part has been through.
type digest [sha256.Size]byte

// orderRun is an order that runs.
type orderRun struct {
	fleet  *Fleet
	orders *Orders
	names  []string
	notes  [][]string
	count  map[string]int // by group

	all   digest            // of parts that have none of their own
	parts map[string]digest // hosts, answers of calls, and the service
	now   map[string]bool   // of the event that runs
	held  uint64            // calls in it that HeldCalls took
}

// begin puts a fleet at the start of an order.
func (f *Fleet) begin(x *Orders) (r *orderRun, err error) {
	r = &orderRun{fleet: f, orders: x, count: map[string]int{}, parts: map[string]digest{}, now: map[string]bool{}}
	r.notes = [][]string{nil}
	f.at = r
	for _, q := range f.Calls {
		q.fleet = f
	}
	if x.Before != nil {
		err = r.protect(false, func() error { x.Before(); return nil })
	}
	r.notes = nil
	return r, err
}

func (r *orderRun) stop() {
	r.fleet.at = nil
	for _, q := range r.fleet.Calls {
		q.fleet = nil
	}
}

// touch takes down what the event that runs is part of.
func (f *Fleet) touch(parts ...string) {
	if f == nil || f.at == nil {
		return
	}
	for _, p := range parts {
		f.at.now[p] = true
	}
}

// took counts a call that does not go past the exploration.
func (f *Fleet) took() {
	if f != nil && f.at != nil {
		f.at.held++
	}
}

func (f *Fleet) note(format string, args ...any) {
	if f == nil || f.at == nil || len(f.at.notes) == 0 {
		return
	}
	last := &f.at.notes[len(f.at.notes)-1]
	*last = append(*last, fmt.Sprintf(format, args...))
}

func (f *Fleet) noteAnswer(of string, c *HTTPCall) {
	if a := c.answer.Load(); a != nil {
		f.note("%s is answered %s %s", of, a.Headers.Value(":status"), a.Body)
	}
}

// ready lists the events that can happen, by their index.
func (r *orderRun) ready() (list []int) {
	for i := range r.orders.Events {
		e := &r.orders.Events[i]
		if r.count[e.group()] < r.orders.times(e) && (e.Ready == nil || e.Ready()) {
			list = append(list, i)
		}
	}
	return list
}

func (e *Event) group() string {
	if e.Group == "" {
		return "event " + e.Name
	}
	return "group " + e.Group
}

func (x *Orders) times(e *Event) int {
	if e.Group != "" {
		i := slices.IndexFunc(x.Events, func(o Event) bool { return o.Group == e.Group })
		e = &x.Events[i]
	}
	return max(e.Times, 1)
}

// do has an event happen.
func (r *orderRun) do(i int) error {
	e := &r.orders.Events[i]
	r.names, r.notes = append(r.names, e.Name), append(r.notes, nil)
	r.count[e.group()]++
	clear(r.now)
	r.held = 0
	clock := r.fleet.clock()
	was, madeBefore := clock.Monotonic(), uint64(0)
	before := make([]uint64, len(r.fleet.Hosts))
	for j, h := range r.fleet.Hosts {
		callbacks, calls := h.work()
		before[j], madeBefore = callbacks, madeBefore+calls
	}
	err := r.protect(false, func() error {
		e.Do()
		if r.orders.Check != nil {
			return r.orders.Check()
		}
		return nil
	})
	made := uint64(0)
	for j, h := range r.fleet.Hosts {
		callbacks, calls := h.work()
		if made += calls; callbacks != before[j] {
			r.now[fmt.Sprint("host ", j)] = true
		}
	}
	unseen := (made-madeBefore)/uint64(calloutKinds+1) != r.held
	r.happened(e.Name, e.Everything || unseen || clock.Monotonic() != was || len(r.now) == 0)
	return err
}

// happened gives all parts of an event one digest: of the event and of what they were.
func (r *orderRun) happened(name string, everything bool) {
	sum := sha256.New()
	fmt.Fprintf(sum, "%q", name)
	if everything {
		key := r.key()
		sum.Write(key[:])
		clear(r.parts)
		sum.Sum(r.all[:0])
		return
	}
	for _, p := range slices.Sorted(maps.Keys(r.now)) {
		d, ok := r.parts[p]
		if !ok {
			d = r.all
		}
		fmt.Fprintf(sum, "%q", p)
		sum.Write(d[:])
	}
	var d digest
	sum.Sum(d[:0])
	for p := range r.now {
		r.parts[p] = d
	}
}

// key is equal for states to which equal events have led.
func (r *orderRun) key() (d digest) {
	sum := sha256.New()
	sum.Write(r.all[:])
	for _, p := range slices.Sorted(maps.Keys(r.parts)) {
		d := r.parts[p]
		fmt.Fprintf(sum, "%q", p)
		sum.Write(d[:])
	}
	sum.Sum(d[:0])
	return d
}

func (r *orderRun) end() error {
	if r.orders.End == nil {
		return nil
	}
	r.notes = append(r.notes, nil)
	return r.protect(true, r.orders.End)
}

// protect makes an OrderError of an error or a panic.
func (r *orderRun) protect(atEnd bool, do func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic: %v", p)
		}
		if err != nil {
			err = &OrderError{Events: slices.Clone(r.names), AtEnd: atEnd, Notes: r.notes, Err: err}
		}
	}()
	return do()
}
