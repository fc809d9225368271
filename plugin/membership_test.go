package plugin

import (
	"fmt"
	"slices"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// A gateway with an old configuration of three replicas and a new one of two.
func rollBack(t *testing.T) (data *memoryData, old, next *store) {
	t.Helper()
	data = newMemoryData()
	old = openStore(t, data, addresses(3), testSession(100))
	old.hear(7, 100)
	next = newStore(data, PoolConfig{Name: "p", Members: addresses(2)}, testSession(100))
	if !next.adopt(10_000, 0) {
		t.Fatal("shared data does not answer")
	}
	return data, old, next
}

// members returns the addresses that may take sessions, by the record.
func members(s *store) (list []string) {
	s.refresh()
	for i := range s.view.List {
		if c := &s.view.List[i]; c.State == policy.Active {
			list = append(list, c.Address)
		}
	}
	return list
}

func mustHave(t *testing.T, s *store, n int, when string) {
	t.Helper()
	var want []string
	for _, m := range addresses(n) {
		want = append(want, m.Address)
	}
	if got := members(s); !slices.Equal(got, want) {
		t.Errorf("%s: members %v, want %v", when, got, want)
	}
}

func TestOldConnectionsDoNotBringAConfigurationBack(t *testing.T) {
	_, old, next := rollBack(t)
	next.hear(20, 10_100)
	for _, connection := range []uint64{0, 3, 7, 19, 20} {
		old.hear(connection, 20_000)
		mustHave(t, old, 2, fmt.Sprint("stream on connection ", connection))
	}
}

// Nobody has used the new configuration, and clients keep their connections.
func TestAnUnusedConfigurationStaysInForce(t *testing.T) {
	_, old, _ := rollBack(t)
	old.hear(9, 10_500) // opened just before the change, heard of just after
	for _, connection := range []uint64{3, 7, 9} {
		old.hear(connection, 30_000)
		mustHave(t, old, 2, fmt.Sprint("stream on connection ", connection))
	}
	old.hear(10, 30_000)
	mustHave(t, old, 3, "stream on a new connection")
}

func TestANewConnectionBringsAConfigurationBack(t *testing.T) {
	_, old, next := rollBack(t)
	next.hear(20, 10_100)
	old.hear(21, 10_200)
	mustHave(t, old, 2, "while the change settles")
	old.hear(22, 20_000)
	mustHave(t, old, 3, "a new connection")
	next.hear(20, 30_000)
	mustHave(t, old, 3, "an old connection of the configuration that was rolled back")
}

// Connections that both configurations got while the change went from thread to
// thread are no sign of a return.
func TestAChangeSettles(t *testing.T) {
	_, old, next := rollBack(t)
	next.hear(20, 10_100)
	next.hear(25, 10_900)
	old.hear(24, 20_000)
	mustHave(t, old, 2, "a connection from the time of the change")
}

// Two configurations that give one pool different replicas and both serve are a
// mistake; it must not cost a change for every request.
func TestConflictingConfigurationsTakeTurns(t *testing.T) {
	data, old, next := rollBack(t)
	before := data.last
	connection := uint64(100)
	for now := int64(20_000); now < 30_000; now += 10 {
		connection++
		old.hear(connection, now)
		connection++
		next.hear(connection, now)
	}
	// A change a second, and the notes of who served first.
	if changes := data.last - before; changes > 2000 {
		t.Errorf("%d writes for 2000 streams", changes)
	}
	old.refresh()
	if n := len(old.view.List); n > 20 {
		t.Errorf("the record has grown to %d replicas", n)
	}
}

// The same members in other words or another order are the same.
func TestSumOfMembers(t *testing.T) {
	a := addresses(3)
	b := []policy.Member{a[2], a[0], a[1]}
	if sumOf(a, 1) != sumOf(b, 1) {
		t.Error("the order of members counts")
	}
	for what, change := range map[string]func(*policy.Member){
		"address": func(m *policy.Member) { m.Address = "10.0.0.9:1" },
		"weight":  func(m *policy.Member) { m.Weight = 2 },
		"state":   func(m *policy.Member) { m.State = policy.Draining },
	} {
		c := slices.Clone(a)
		change(&c[1])
		if sumOf(a, 1) == sumOf(c, 1) {
			t.Errorf("another %s is the same", what)
		}
	}
	if sumOf(a, 1) == sumOf(a, 2) {
		t.Error("another timeout is the same")
	}
	if sumOf(nil, 1) == 0 {
		t.Error("0 means that there were no members yet")
	}
}

// A hash for an id would be newer than every connection that is counted.
func TestConnectionIDsThatDoNotRiseTellNothing(t *testing.T) {
	for _, c := range []struct {
		property []byte
		want     uint64
	}{
		{[]byte{7, 1, 0, 0, 0, 0, 0, 0}, 263},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0, 0}, 1<<48 - 1},
		{[]byte{0, 0, 0, 0, 0, 0, 1, 0}, 0},
		{[]byte{0, 0, 0, 0, 0, 0, 0, 0x80}, 0},
		{[]byte{7}, 0},
		{nil, 0},
	} {
		if got := risingID(c.property); got != c.want {
			t.Errorf("% x: %d, want %d", c.property, got, c.want)
		}
	}
}
