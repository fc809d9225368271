package e2e

import (
	"sync"
	"testing"
)

// shared are the gateways of all tests. Tests that want the same kind at once get
// one each, up to mostOfAKind; a further one waits.
type shared struct {
	mu     sync.Mutex
	places map[string]place // by name
	failed map[string]bool  // the names of which one did not start
	all    []*gateway
}

type place struct {
	idle chan *gateway
	room chan struct{} // a token for each that may be started
}

// mostOfAKind bounds gateways of one kind and version: each further one has to be started, which takes seconds of CPU.
const mostOfAKind = 2

var gateways = shared{places: map[string]place{}, failed: map[string]bool{}}

// take returns a gateway for this test alone, started if need be.
func (s *shared) take(t *testing.T, k kind, version string) *gateway {
	t.Helper()
	name := string(k) + " " + version
	p := s.place(name)
	var g *gateway
	select {
	case g = <-p.idle:
	default:
		select {
		case g = <-p.idle:
		case <-p.room:
			g = s.start(t, k, version, p)
		}
	}
	t.Cleanup(func() { p.idle <- g }) // after all that the test itself leaves to its end
	return g
}

func (s *shared) place(name string) place {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.places[name]
	if !ok {
		p = place{make(chan *gateway, mostOfAKind), make(chan struct{}, mostOfAKind)}
		for range mostOfAKind {
			p.room <- struct{}{}
		}
		s.places[name] = p
	}
	return p
}

func (s *shared) start(t *testing.T, k kind, version string, p place) *gateway {
	t.Helper()
	name := string(k) + " " + version
	s.mu.Lock()
	failed := s.failed[name]
	s.mu.Unlock()
	if failed {
		p.room <- struct{}{}
		t.Fatalf("this gateway (%s) did not start; an earlier test says why", name)
	}
	g, err := start(k, version)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed[name] = true
		p.room <- struct{}{}
		t.Fatal(err)
	}
	g.name = name
	s.all = append(s.all, g)
	return g
}

// everyone are all that have been started.
func (s *shared) everyone() []*gateway {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all
}
