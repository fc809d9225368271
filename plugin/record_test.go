package plugin

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// fullRecord has every part that a record can have.
func fullRecord() *record {
	r := &record{shards: 4, membership: membership{sum: 5, adopted: 6, since: 7}}
	r.Apply(addresses(5), 0, 0)
	r.Placements = 8
	for i := range r.List {
		c := &r.List[i]
		c.Weight, c.Open, c.LastChosen, c.Placements = uint32(i)+1, uint32(i)+2, uint64(i)+3, uint64(i)+4
	}
	r.List[0].Joining, r.List[0].Drained = true, true
	r.List[1].Health = policy.Health{Failures: 9}
	r.List[2].Health = policy.Health{Failures: 10, Probing: true, Cooldown: 11, Since: 12, Until: 13}
	r.List[3].State, r.List[3].Void, r.List[3].RemovedAt = policy.Removed, true, 14
	r.List[4].State = policy.Unhealthy
	return r
}

// A module reads what another version of it wrote under the same keys. Whoever
// changes a layout changes schemaVersion and keyRoot, and then these sums.
func TestSchemaNamesTheLayout(t *testing.T) {
	if want := fmt.Sprintf("pw%d/", schemaVersion); keyRoot != want {
		t.Errorf("keys begin with %s, want %s", keyRoot, want)
	}
	f := newInflight(newMemoryData(), "p", 5)
	f.begin(6)
	f.encode(7)
	for _, c := range []struct {
		what  string
		value []byte
		want  string
	}{
		{"record", fullRecord().encode(nil), "f8f8935c"},
		{"shard", shard(nil).copyTo(nil).put(-1, policy.Hash{Hi: 1, Lo: 2}, policy.Pin{Replica: 3, LastSeen: 4}), "9b1e0ddd"},
		{"slot", f.buf, "3c46b30c"},
	} {
		if got := fmt.Sprintf("%x", sha256.Sum256(c.value))[:8]; got != c.want {
			t.Errorf("%s: %s, was %s", c.what, got, c.want)
		}
	}
}

// While a gateway updates the module, an older one whose records have another
// layout serves its last streams: neither reads what the other wrote, and both
// keep sessions.
func TestAnOlderModuleBesideThisOne(t *testing.T) {
	le := binary.LittleEndian
	// A record of schema 1: no placements of a replica, no time of its removal.
	older := le.AppendUint32([]byte{1}, 4)
	older = append(older, make([]byte, 4*8)...)
	older = le.AppendUint32(older, 2)
	older = le.AppendUint16(older, 1)
	older = append(older, make([]byte, 4+4+4+8+1+1)...)
	older = append(append(older, 10), "10.0.0.1:1"...)

	data := newMemoryData()
	if err := data.set("pw1/p/replicas", older, createCAS); err != nil {
		t.Fatal(err)
	}
	s := openStore(t, data, addresses(2), testSession(100))
	for _, want := range []policy.Reason{policy.Placed, policy.Pinned} {
		if d, ok := s.turn(keyOf("s"), nil, 1000); !ok || d.Reason != want {
			t.Errorf("%+v, ok %v, want %v", d, ok, want)
		}
	}
	if got := data.values["pw1/p/replicas"]; string(got) != string(older) {
		t.Errorf("the older module's record is now % x", got)
	}
	if s.stats.faults != [numFaults]uint64{} {
		t.Errorf("faults %v", s.stats.faults)
	}
}

// Whatever stands where a record should is refused, or read without harm.
func FuzzRecord(f *testing.F) {
	full := fullRecord().encode(nil)
	f.Add(full)
	f.Add(full[:len(full)-1])
	f.Add([]byte{})
	f.Add([]byte{schemaVersion})
	for at := range full {
		bad := append([]byte(nil), full...)
		bad[at] ^= 0xff
		f.Add(bad)
	}
	f.Fuzz(func(t *testing.T, value []byte) {
		var r, again record
		if r.decode(value) != nil {
			return
		}
		if err := again.decode(r.encode(nil)); err != nil {
			t.Fatalf("%v: %+v", err, r)
		}
		if fmt.Sprint(again) != fmt.Sprint(r) {
			t.Fatalf("got  %+v\nwant %+v", again, r)
		}
		data := newMemoryData()
		if err := data.set(keyRoot+"p/replicas", value, createCAS); err != nil {
			t.Fatal(err)
		}
		s := newStore(data, PoolConfig{Name: "p", Members: addresses(2)}, testSession(100))
		for _, name := range policy.Names() {
			s.policy, _ = policy.New(name, policy.Options{LoadFactor: 1.25})
			s.turn(keyOf("s"), nil, 1000)
			s.policy.Unpinned(&s.view.Replicas, policy.Query{Now: 1000})
		}
		s.answered(1, false, 1000, 1000)
		s.answered(1, true, 1001, 1001)
		s.drain(addresses(1)[0].Address, true)
		s.finish(keyOf("s").Hash, 1000)
		s.reset(1000)
	})
}
