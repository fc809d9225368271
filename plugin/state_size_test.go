package plugin

import (
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// keyCost is what Envoy holds for a key besides its bytes and its value's, on 64 bits, rounded
// up: a node of an unordered_map (80: next, hash, two std::string of libc++, cas, and tcmalloc's
// rounding), a bucket or two of its table (16), the key where it has more than 22 characters (32),
// and what the allocator rounds a value up by (an eighth of it at most, apart).
// Source: proxy-wasm-cpp-host, src/shared_data.h.
const keyCost = 80 + 16 + 32

// stateSize is what a pool holds in shared data.
type stateSize struct{ keys, bytes, process int }

func (d *benchData) size() (s stateSize) {
	for key, v := range d.values {
		s.keys++
		s.bytes += len(key) + len(v.bytes)
		s.process += keyCost + len(v.bytes) + len(v.bytes)/8
	}
	return s
}

// A session takes no more than 48 bytes of the gateway, with all that Envoy holds besides for its
// shard's key: few sessions or many, if max_sessions fits them. A pool whose table is laid
// out for many more has up to a key for each.
func TestStateOfASession(t *testing.T) {
	t.Log("sessions max_sessions  keys      bytes  bytes/session  of the process/session")
	for _, c := range []struct{ sessions, most int }{
		{1000, 1000}, {30_000, 30_000}, {1_000_000, 1_000_000}, {1000, 100_000}, {30_000, 100_000},
	} {
		f := &benchFleet{data: newBenchData()}
		f.pool = newPool(f.data, PoolConfig{Name: "default", Members: addresses(64)}, benchConfig(c.most), 1)
		f.pool.store.adopt(0, 0)
		empty := f.data.size()
		for i := range c.sessions {
			if r := f.turn(f.newcomer(i)); r != policy.Placed {
				t.Fatalf("session %d of %d: %v", i, c.most, r)
			}
		}
		s := f.data.size()
		s.process -= empty.process // the record is as large without sessions
		each := float64(s.process) / float64(c.sessions)
		t.Logf("%8d %12d %5d %10d %14.1f %23.1f", c.sessions, c.most, s.keys, s.bytes,
			float64(s.bytes-empty.bytes)/float64(c.sessions), each)
		if c.most == c.sessions && each > 48 {
			t.Errorf("%d sessions take %.1f bytes each", c.sessions, each)
		}
		if most := int(f.pool.store.view.shards) + 1; s.keys > most {
			t.Errorf("%d keys for %d sessions, want at most %d", s.keys, c.sessions, most)
		}
	}
}

// The gateway cannot delete a key: there are no more than the table has shards, whatever number of
// sessions has come and gone. A million pass through a table of 10,000; half of them end, the
// others are left to expire.
func TestAMillionSessionsLeaveNoKeys(t *testing.T) {
	const sessions, most, timeout, every = 1_000_000, 10_000, 60_000, 4 // ms
	f := &benchFleet{data: newBenchData()}
	c := benchConfig(most)
	f.pool = newPool(f.data, PoolConfig{Name: "default", Members: addresses(8)}, c, 1)
	s := f.pool.store
	s.timeout = timeout
	s.adopt(0, 0)
	keyOf := func(i int) policy.Key { return policy.NewKey(policy.Secret{}, f.newcomer(i)) }
	seen := map[policy.Reason]int{}
	ended, keys, full := 0, 0, 0
	for i := range sessions {
		now := int64(1000 + i*every)
		f.data.Forget()
		seen[f.pool.decide(keyOf(i), true, 0, nil, now).Reason]++
		if i >= 2500 && i%2 == 0 && s.finish(keyOf(i-2500).Hash, now) {
			ended++
		}
		if i%250 == 0 { // a second
			s.sweep(f.pool.sweepShards(), now)
		}
		switch size := f.data.size; i {
		case sessions / 10:
			keys, full = size().keys, size().bytes
		case sessions - 1:
			if got := size(); got.keys != keys || got.bytes > full*3/2 {
				t.Errorf("%d keys of %d bytes, %d of %d after a tenth of the sessions", got.keys, got.bytes, keys, full)
			}
		}
	}
	if keys != int(s.view.shards)+1 {
		t.Errorf("%d keys, %d shards", keys, s.view.shards)
	}
	if seen[policy.Placed] < sessions/2 || ended < sessions/10 || s.stats.expired < sessions/10 {
		t.Errorf("the sessions: %v, %d ended, %d expired", seen, ended, s.stats.expired)
	}
	t.Logf("%d sessions of at most %d at once: %d keys, %v, %d ended, %d expired", sessions, most, keys, seen, ended, s.stats.expired)
}
