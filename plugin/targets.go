package plugin

import (
	"encoding/base64"
	"slices"
	"strings"
	"unsafe"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// targets makes what the gateway is told: the address of a session's replica, then
// those of its spares.
//
// Of a pool of few replicas, one of which is plain, each replica's value for each class of
// sessions is kept once it was made: until a replica comes, goes, or becomes or ceases to
// be plain.
type targets struct {
	spares int // how many
	base64 bool
	// slots find spares in a large pool.
	slots policy.Slots
	// kept holds the values by replica and class, of the record's version; nil if it is
	// not such a pool.
	kept    []string
	version uint32
	// text, coded and positions are scratch.
	text, coded []byte
	positions   []int
}

// known returns the value for a session of that class on the replica at position
// primary, if it is kept, else "".
func (t *targets) known(r *record, class uint8, primary int) string {
	if t.version != r.version || len(t.kept) == 0 {
		return ""
	}
	return t.kept[primary*policy.SpareClasses+int(class)]
}

// value returns what the gateway is told of the session on the replica at position
// primary. It is valid until the next call.
func (t *targets) value(r *record, key policy.Key, primary int, pins bool, now int64) string {
	if t.version != r.version {
		t.renew(r, pins)
	}
	text := t.make(&r.Replicas, key, primary, pins, now)
	if len(t.kept) > 0 {
		text = strings.Clone(text)
		t.kept[primary*policy.SpareClasses+int(key.SpareClass())] = text
	}
	return text
}

// renew forgets what was kept of another version of the record.
func (t *targets) renew(r *record, pins bool) {
	t.version, t.kept = r.version, t.kept[:0]
	t.slots = policy.Slots{} // which cannot tell every record from one that was lost
	// Without panic no replica becomes a spare by time alone, and with one that is plain there is none.
	if !pins || len(r.List) > policy.FewReplicas || !slices.ContainsFunc(r.List, func(c policy.Replica) bool { return c.Plain() }) {
		return
	}
	if n := len(r.List) * policy.SpareClasses; n > cap(t.kept) {
		t.kept = make([]string, n)
	} else {
		t.kept = t.kept[:n]
		clear(t.kept)
	}
}

func (t *targets) make(r *policy.Replicas, key policy.Key, primary int, pins bool, now int64) string {
	t.text = append(t.text[:0], r.List[primary].Address...)
	if pins {
		t.positions = t.slots.Spares(t.positions[:0], r, key, primary, t.spares, now)
	} else { // the choice has asked every replica, and a hash's next one is the next of its order
		t.positions = policy.Spares(t.positions[:0], r, key, primary, t.spares, now)
	}
	for _, i := range t.positions {
		t.text = append(append(t.text, ','), r.List[i].Address...)
	}
	text := t.text
	if t.base64 {
		t.coded = base64.StdEncoding.AppendEncode(t.coded[:0], text)
		text = t.coded
	}
	return unsafe.String(unsafe.SliceData(text), len(text))
}
