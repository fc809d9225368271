//go:build peer

package vllmrouter

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// The same 2,000 random events go to the real vllm-router with policy sticky_least_loaded and to Pinwheel in the
// embedded gateway. After each one the open sessions of every replica must agree exactly. Where the two differ on purpose,
// the events are led around the difference, by these rules:
//
//   - ties: vllm-router breaks them by a hash of session id and address, Pinwheel by least recently chosen. Where the
//     choice differs between equally loaded replicas, the session is finished in vllm-router and comes again under
//     another name, until the hash chooses the same. Anything but a tie fails.
//   - joining: a replica that comes, or comes back, with fewer sessions than the others gets every new session from
//     vllm-router and at most twice its fair share from Pinwheel. Extra sessions are opened until it is level in both,
//     the counts are compared within 1, and the extra sessions are finished.
//   - generation: an address that is removed and added again keeps its sessions in vllm-router and is another replica in
//     Pinwheel. Before it is added, each of its sessions has a turn.
//
// PEER_SEED repeats a run.
func TestSameEventsSameLoad(t *testing.T) {
	const events = 2000
	seed := uint64(20250601)
	if s := os.Getenv("PEER_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("PEER_SEED: %v", err)
		}
		seed = n
	}
	replicas := openReplicas(t, 7)
	all := addresses(replicas)
	members := map[string]bool{}
	for _, a := range all[:4] {
		members[a] = true
	}
	d := &differential{
		t: t, peer: startPeer(t, "sticky_least_loaded", replicas, all[:4]), ours: startPinwheel(t, replicas, all[:4], nil), members: members,
		theirHome: ledger{}, ourHome: ledger{}, names: map[string]string{}, kinds: map[kind]int{},
	}
	list := generate(seed, events, all, members)
	for i, e := range list {
		err := d.apply(e)
		if err == nil && (i%100 == 99 || i == len(list)-1) {
			err = d.audit()
		}
		if err != nil {
			var last []string
			for j := max(0, i-19); j <= i; j++ {
				last = append(last, fmt.Sprintf("%5d %s", j, list[j]))
			}
			t.Fatalf("PEER_SEED=%d, after %d events: %v\nthe last of them:\n%s\nmembers %v\nopen in vllm-router %v\nopen in Pinwheel    %v",
				seed, i+1, err, strings.Join(last, "\n"), d.members, d.theirHome.counts(), d.ourHome.counts())
		}
	}
	t.Logf("%d events %v, %d placements, %d of them tied otherwise, %d extra sessions for %d joining replicas, %d turns before an address came again",
		len(list), d.kinds, d.placements, d.renamed, d.extra, d.joined, d.settled)
	for _, k := range []kind{newSession, aTurn, finish, unhealthy, back, removed, added} {
		if d.kinds[k] < 10 {
			t.Errorf("only %d events %s", d.kinds[k], k)
		}
	}
}

// differential applies events to both and keeps the ledgers.
type differential struct {
	t       *testing.T
	peer    *peer
	ours    *pinwheel
	members map[string]bool
	// theirHome and ourHome are keyed by our name of the session; names has vllm-router's.
	theirHome, ourHome ledger
	names              map[string]string

	kinds                                       map[kind]int
	placements, renamed, extra, joined, settled int
}

// apply carries out one event and compares.
func (d *differential) apply(e event) error {
	d.kinds[e.kind]++
	switch e.kind {
	case newSession:
		d.names[e.session] = e.session
		if err := d.place(e.session); err != nil {
			return err
		}
	case aTurn:
		if err := d.turn(e.session); err != nil {
			return err
		}
	case finish:
		if err := d.finish(e.session); err != nil {
			return err
		}
	case added:
		if err := d.vacate(e.replica); err != nil {
			return err
		}
		fallthrough
	default:
		d.peer.set(e.members)
		d.ours.set(e.members)
		d.members = e.members
		if e.kind == added || e.kind == back {
			if err := d.join(e.replica); err != nil {
				return err
			}
		}
	}
	return d.compare(0)
}

// turn sends a turn of an open session: it stays where it is while that replica is there and healthy.
func (d *differential) turn(id string) error {
	home := d.ourHome[id]
	if !d.members[home] {
		return d.place(id)
	}
	ours, err := d.ours.turn(id)
	if err != nil {
		return err
	}
	theirs, err := d.peer.turn(d.names[id])
	if err != nil {
		return err
	}
	if ours != home || theirs != home {
		return fmt.Errorf("%s was on %s; vllm-router sends it to %s, Pinwheel to %s", id, home, theirs, ours)
	}
	return nil
}

// place sends a turn of a session that has no replica, or has lost it, and leads vllm-router around another tie.
func (d *differential) place(id string) error {
	d.placements++
	lost := d.ourHome[id]
	delete(d.ourHome, id)
	delete(d.theirHome, id)
	ours, err := d.ours.turn(id)
	if err != nil {
		return err
	}
	if !d.members[ours] || ours == lost {
		return fmt.Errorf("Pinwheel places %s on %s, which is not healthy", id, ours)
	}
	const most = 500 // of 7 replicas each is tried once in 7: that many failures in a row are no accident
	for try := range most {
		if try > 0 {
			d.names[id] = fmt.Sprintf("%s-%d", id, try)
		}
		theirs, err := d.peer.turn(d.names[id])
		if err != nil {
			return err
		}
		if theirs == ours {
			d.theirHome[id], d.ourHome[id] = theirs, ours
			return nil
		}
		if a, b := d.theirHome.load(theirs), d.ourHome.load(ours); a != b || !d.members[theirs] {
			return fmt.Errorf("vllm-router places %s on %s with %d open sessions, Pinwheel on %s with %d: no tie", id, theirs, a, ours, b)
		}
		if try == 0 {
			d.renamed++
		}
		if err := d.peer.finish(d.names[id]); err != nil {
			return err
		}
	}
	return fmt.Errorf("vllm-router never places a session where Pinwheel places %s, on %s with %d open sessions", id, ours, d.ourHome.load(ours))
}

func (d *differential) finish(id string) error {
	if err := d.peer.finish(d.names[id]); err != nil {
		return err
	}
	if err := d.ours.finish(id); err != nil {
		return err
	}
	delete(d.theirHome, id)
	delete(d.ourHome, id)
	delete(d.names, id)
	return nil
}

// vacate is the rule generation: each session that was on the address has a turn while it is gone.
func (d *differential) vacate(address string) error {
	for _, id := range slices.Sorted(maps.Keys(d.ourHome)) {
		if d.ourHome[id] == address {
			d.settled++
			if err := d.turn(id); err != nil {
				return err
			}
		}
	}
	return nil
}

// join is the rule joining: extra sessions, until the replica is level with the others in both.
func (d *differential) join(address string) error {
	healthy := healthyOf(d.members, true)
	lowest := func(l ledger) (low int) {
		low = -1
		for _, h := range healthy {
			if n := l.load(h); h != address && (low < 0 || n < low) {
				low = n
			}
		}
		return low
	}
	if d.ourHome.load(address) >= lowest(d.ourHome) {
		return nil // it is level
	}
	d.joined++
	var extra []string
	caughtUp := false
	for ; !caughtUp || spread(d.ourHome, healthy) > 1 || spread(d.theirHome, healthy) > 1; d.extra++ {
		if len(extra) > 20*sessionsAimedAt {
			return fmt.Errorf("%s is not level with the others after %d more sessions", address, len(extra))
		}
		id := fmt.Sprintf("extra%d", d.extra)
		theirs, err := d.peer.turn(id)
		if err != nil {
			return err
		}
		ours, err := d.ours.turn(id)
		if err != nil {
			return err
		}
		if low := d.theirHome.load(theirs); low > lowest(d.theirHome) || low > d.theirHome.load(address) {
			return fmt.Errorf("vllm-router gives a session to %s, which has not the fewest", theirs)
		}
		if ours != address && d.ourHome.load(ours) > lowest(d.ourHome) {
			return fmt.Errorf("Pinwheel passes over %s for %s, which has not the fewest of the others", address, ours)
		}
		d.theirHome[id], d.ourHome[id], d.names[id] = theirs, ours, id
		extra = append(extra, id)
		caughtUp = caughtUp || ours == address && d.ourHome.load(address) >= lowest(d.ourHome)
	}
	if err := d.compare(1); err != nil {
		return fmt.Errorf("with %d sessions more, by which %s became level: %w", len(extra), address, err)
	}
	for _, id := range extra {
		if err := d.finish(id); err != nil {
			return err
		}
	}
	return nil
}

// compare holds the ledgers' open sessions on each replica against each other.
func (d *differential) compare(within int) error {
	theirs, ours := d.theirHome.counts(), d.ourHome.counts()
	for address := range d.peer.replicas {
		if diff := theirs[address] - ours[address]; diff > within || diff < -within {
			return fmt.Errorf("%s has %d open sessions in vllm-router, %d in Pinwheel", address, theirs[address], ours[address])
		}
	}
	return nil
}

// audit asks the two what they count themselves: Pinwheel's metric, and vllm-router's log at a further placement on each
// healthy replica.
func (d *differential) audit() error {
	d.ours.tick()
	counts := d.ourHome.counts()
	for address := range d.peer.replicas {
		if n := d.ours.open(address); n != counts[address] {
			return fmt.Errorf("Pinwheel counts %d open sessions on %s, %d were last served there", n, address, counts[address])
		}
	}
	const id = "audit"
	at, err := d.peer.turn(id)
	if err != nil {
		return err
	}
	want := placement{at, d.theirHome.load(at) + 1}
	var got placement
	eventually(d.t, "vllm-router logs a placement", func() string {
		var ok bool
		if got, ok = d.peer.log.of(id); !ok {
			return "no line yet"
		}
		return ""
	})
	d.peer.log.forget(id)
	if got != want {
		return fmt.Errorf("vllm-router counts %d open sessions on %s, want %d on %s", got.open, got.replica, want.open, want.replica)
	}
	return d.peer.finish(id)
}
