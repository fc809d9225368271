package plugin

import (
	"crypto/sha256"
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
		{"record", fullRecord().encode(nil), "29d8f50f"},
		{"shard", shard(nil).copyTo(nil).put(-1, policy.Hash{Hi: 1, Lo: 2}, policy.Pin{Replica: 3, LastSeen: 4}), "d2dd9a07"},
		{"slot", f.buf, "b7b67b99"},
	} {
		if got := fmt.Sprintf("%x", sha256.Sum256(c.value))[:8]; got != c.want {
			t.Errorf("%s: %s, was %s", c.what, got, c.want)
		}
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
