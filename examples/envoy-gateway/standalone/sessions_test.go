package standalone_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// One Envoy Gateway lives through what a cluster sees: sessions, a replica that
// dies, pods that go and come, a new plugin. Its own start takes half a minute.
func TestSessions(t *testing.T) {
	s := start(t, nil)
	s.ready(t)
	t.Run("configuration", s.configuration)
	t.Run("sessions stay", s.sessionsStay)
	t.Run("a client cannot name the replica", s.clientCannotName)
	t.Run("metrics", s.metrics)
	t.Run("a replica dies", s.replicaDies)
	t.Run("pods go and come", s.podsGoAndCome)
	t.Run("upgrade by digest", s.upgrade)
	t.Run("off and on", s.off)
	t.Run("a digest that does not fit", s.wrongDigest)
	t.Run("a configuration that the plugin refuses", s.refused)
	t.Run("ids in bodies", s.idsInBodies)
	t.Run("order of filters", s.order)
}

// sessionsStay: three sessions on three replicas, three turns each; a release frees the place.
func (s *setup) sessionsStay(t *testing.T) {
	homes := map[string]string{}
	for turn := range 3 {
		for _, session := range []string{"a", "b", "c"} {
			r, want := s.turn(t, session), "pinned"
			if turn == 0 {
				homes[session], want = r.served, "placed"
			}
			if r.status != 200 || r.served != homes[session] || r.chosen != r.served || r.reason != want || r.attempts != "1" {
				t.Errorf("turn %d of %s: %+v, want %s, %s at the first attempt", turn, session, r, homes[session], want)
			}
		}
	}
	if n := len(distinct(homes)); n != 3 {
		t.Errorf("three sessions on %d replicas: %v", n, homes)
	}
	if !s.release(t, "b") {
		t.Error("the release was not acknowledged")
	}
	if r := s.turn(t, "d"); r.served != homes["b"] || r.reason != "placed" {
		t.Errorf("the next session: %+v, want it where b was: %s", r, homes["b"])
	}
	for _, session := range []string{"a", "c", "d"} {
		s.release(t, session)
	}
}

func distinct(m map[string]string) []string {
	var all []string
	for _, v := range m {
		all = append(all, v)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// clientCannotName: what a client sends under the target's name changes nothing; the
// replica sees the plugin's choice.
func (s *setup) clientCannotName(t *testing.T) {
	for i, r := range s.replicas {
		session := fmt.Sprint("named", i)
		home := s.turn(t, session).served
		if got := s.send(t, "GET", "/x", "x-session-id", session, "x-gateway-destination-endpoint", r.Addr); got.served != home || got.reason != "pinned" {
			t.Errorf("asked for %s: %+v, want its home %s", r.Addr, got, home)
		}
		s.release(t, session)
	}
	// Without an upstream filter, which Envoy Gateway does not have, the replica reads the list.
	seen := s.replicas[0].Requests()
	if last := seen[len(seen)-1].Header.Get("x-gateway-destination-endpoint"); strings.Count(last, ",") != 2 {
		t.Errorf("the replica saw %q, want the session's replica and two spares", last)
	}
}

// metrics have labels.
func (s *setup) metrics(t *testing.T) {
	until(t, "metrics with labels", func() bool {
		page, err := s.Admin.Get(t.Context(), "/stats/prometheus")
		return err == nil && strings.Contains(page, `pinwheel_sessions{pool="default",replica="`+s.replicas[2].Addr+`"} 0`) &&
			strings.Contains(page, `pinwheel_decisions_total{pool="default",policy="sticky_least_loaded",reason="pinned"}`)
	})
}

// replicaDies: no turn fails. The retry goes to the session's own spare; then the
// session lives there.
func (s *setup) replicaDies(t *testing.T) {
	homes := map[string]string{}
	for _, session := range []string{"a", "b", "c"} {
		homes[session] = s.turn(t, session).served
	}
	dead := s.replicas[0]
	dead.Close()
	defer func() {
		if err := dead.Reopen(); err != nil {
			t.Error(err)
		}
	}()
	retried, moved := 0, ""
	until(t, "the dead replica's session has moved", func() bool {
		for _, session := range []string{"a", "b", "c"} {
			r := s.turn(t, session)
			switch {
			case r.status != 200:
				t.Fatalf("a turn failed: %+v", r)
			case homes[session] != dead.Addr && (r.served != homes[session] || r.attempts != "1"):
				t.Errorf("%s lives on %s: %+v", session, homes[session], r)
			case homes[session] == dead.Addr && r.attempts == "2":
				retried++
			case homes[session] == dead.Addr:
				moved = r.served
			}
		}
		return moved != ""
	})
	if retried == 0 || moved == dead.Addr {
		t.Errorf("%d turns were retried, then the session lived on %s", retried, moved)
	}
	for session := range homes {
		s.release(t, session)
	}
}

// podsGoAndCome: sessions of a replica that is gone are placed anew, the others
// stay; a new one takes new sessions.
func (s *setup) podsGoAndCome(t *testing.T) {
	until(t, "all replicas serve again", func() bool {
		homes := map[string]string{}
		for _, session := range []string{"p", "q", "r"} {
			homes[session] = s.turn(t, session).served
			defer s.release(t, session)
		}
		return len(distinct(homes)) == 3
	})
	homes := map[string]string{}
	for _, session := range []string{"a", "b", "c"} {
		homes[session] = s.turn(t, session).served
	}
	gone := s.replicas[1]
	s.objects.Replicas(addresses(s.replicas[0], s.replicas[2]))
	s.apply(t)
	until(t, "no session lives on the replica that is gone", func() bool {
		left := true
		for session, home := range homes {
			r := s.turn(t, session)
			if r.status != 200 || home != gone.Addr && r.served != home {
				t.Fatalf("%s lived on %s: %+v", session, home, r)
			}
			left = left && r.served != gone.Addr && r.chosen != gone.Addr
		}
		return left
	})
	added, err := envoytest.OpenReplica("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s.closeLater(added)
	s.objects.Replicas(addresses(s.replicas[0], s.replicas[2], added))
	if err := s.Apply(s.objects); err != nil {
		t.Fatal(err)
	}
	n := 0
	until(t, "a new session lives on the new replica", func() bool {
		n++
		return s.turn(t, fmt.Sprint("new", n)).served == added.Addr
	})
	for session := range homes {
		s.release(t, session)
	}
	for ; n > 0; n-- {
		s.release(t, fmt.Sprint("new", n))
	}
}
