package plugin

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/plugin/abi"
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

// content is what a record says.
func content(r *record) string { return fmt.Sprint(r.shards, r.membership, r.Replicas) }

// A record that is read again, after others changed this and that, says what one says
// that is read for the first time; and one that is written in part, what one says that
// is written whole.
func TestRecordsAreReadAndWrittenInPart(t *testing.T) {
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 1))
		theirs, ours := &record{shards: 4}, &record{}
		theirs.Apply(addresses(1+rng.IntN(40)), 0, 0)
		mustAgree := func(when string, text []byte) {
			t.Helper()
			fresh := &record{}
			if err := fresh.decode(text); err != nil {
				t.Fatal(when, err)
			}
			if err := ours.decode(text); err != nil {
				t.Fatal(when, err)
			}
			if content(ours) != content(fresh) {
				t.Fatalf("seed %d, %s:\n%s\nwant\n%s", seed, when, content(ours), content(fresh))
			}
		}
		mustAgree("at first", theirs.encode(nil))
		for step := range int64(200) {
			i := rng.IntN(len(theirs.List))
			id, when := theirs.List[i].ID, ""
			switch draw := rng.IntN(20); {
			case draw < 8:
				when = "placed"
				theirs.Reserve(i, step)
			case draw < 12:
				when = "ended"
				theirs.Return(id, 1)
			case draw < 15:
				when = "failed"
				theirs.Fail(id, step, step, policy.HealthRule{Failures: 2, Cooldown: 3, MaxCooldown: 9})
			case draw < 17:
				when = "went well"
				theirs.Succeed(id, step)
			case draw == 17:
				when = "drained"
				theirs.Drain(id, step%2 == 0)
			case draw == 18:
				when = "members changed"
				theirs.Apply(addresses(1+rng.IntN(40)), step, 0)
				theirs.Forget(step, 0)
			default:
				when = "a connection came"
				theirs.membership.since++
			}
			mustAgree(when, theirs.encode(nil))
			i = rng.IntN(len(ours.List))
			if rng.IntN(3) > 0 {
				ours.Reserve(i, step)
			} else {
				ours.Return(ours.List[i].ID, 1)
			}
			want := ours.encode(nil)
			if got := ours.textBut(i); !bytes.Equal(got, want) {
				t.Fatalf("seed %d, after %s: %d and placements written:\n%x\nwant\n%x", seed, when, i, got, want)
			}
			if rng.IntN(4) > 0 { // else another was faster
				theirs = &record{}
				if err := theirs.decode(want); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// Whatever a worker does, its view is what it last read or wrote, unless it knows that
// it is not: else it would never see what changed there.
func TestViewsAreWhatWasRead(t *testing.T) {
	for _, name := range policyNames {
		data, now := newMemoryData(), int64(1000)
		var pools [3]*pool
		for w := range pools {
			c := benchConfig(40)
			c.Health.Failures = 2
			pools[w] = newPool(data, PoolConfig{Name: "p", Policy: name, Members: addresses(12)}, c, uint64(w+1))
			pools[w].store.adopt(now, 0)
		}
		rng := rand.New(rand.NewPCG(1, 2))
		seen := map[policy.Reason]int{}
		for range 2000 {
			p := pools[rng.IntN(len(pools))]
			now += rng.Int64N(2000)
			list := p.store.view.List
			key, replica := keyOf(fmt.Sprint(rng.IntN(60))), list[rng.IntN(len(list))].ID
			switch draw := rng.IntN(100); {
			case draw < 50:
				seen[p.decide(key, true, 0, nil, now).Reason]++
			case draw < 55:
				p.decide(policy.Key{}, false, policy.Keyless, nil, now)
			case draw < 70:
				p.store.finish(key.Hash, now)
			case draw < 80:
				p.store.answered(replica, false, now, now)
			case draw < 90:
				p.store.answered(replica, true, now, now)
			case draw < 92:
				p.store.drain(addresses(12)[rng.IntN(12)].Address, draw == 90)
			case draw < 94:
				p.store.follow(key.Hash, replica, list[rng.IntN(len(list))].ID, now)
			case draw < 95 && rng.IntN(5) == 0:
				p.store.reset(now)
			case draw < 97:
				p.store.sweep(4, now)
				p.store.reconcile()
			case draw < 98:
				p.store.forgetRemovedNow(now)
			default:
				p.store.hear(uint64(now), now)
			}
			for w, p := range pools {
				if p.store.view.known {
					want := &record{}
					if err := want.decode(p.store.view.raw); err != nil || content(want) != content(&p.store.view) {
						t.Fatalf("%s, worker %d: %v, read or wrote\n%s\nhas\n%s", name, w, err, content(want), content(&p.store.view))
					}
				}
			}
		}
		if seen[policy.Placed] == 0 || pools[0].chooser.Pins() && (seen[policy.Pinned] == 0 || seen[policy.FailoverUnhealthy] == 0) {
			t.Errorf("%s: decisions %v", name, seen)
		}
	}
}

// forgetRemovedNow is what a leader does with replicas of which nothing runs.
func (s *store) forgetRemovedNow(now int64) {
	if cas, ok := s.refresh(); ok {
		s.forgetRemoved(nil, cas, now)
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
		if content(&again) != content(&r) {
			t.Fatalf("got  %s\nwant %s", content(&again), content(&r))
		}
		data := newMemoryData()
		if err := data.Set(keyRoot+"p/replicas", value, abi.CreateCAS); err != nil {
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

// encode appends the record to dst, and knows nothing of what was read or written.
func (r *record) encode(dst []byte) []byte {
	dst = r.appendHeader(dst)
	for i := range r.List {
		dst = appendReplica(dst, &r.List[i])
	}
	return dst
}
