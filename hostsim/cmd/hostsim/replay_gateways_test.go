package main

import (
	"reflect"
	"slices"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// Several gateways are in the figures, with how far sessions were scattered: with turns at random a gateway that keeps its pins to
// itself scatters them, one that agrees with the others by etcd does not, a hash without bounds of load does not, and neither does hashing the session in front. One gateway has no
// such figure.
func TestReplayGateways(t *testing.T) {
	const bare = `{"consistent_hash":{"load_factor":0}}`
	args := []string{"--policy", "sticky_least_loaded,consistent_hash,session_hash", "--config", bare, "--gateways", "2"}
	random := append(args[:len(args):len(args)], "--deal", "random")
	r := replayJSON(t, random...)
	if again := replayJSON(t, random...); !reflect.DeepEqual(r, again) {
		t.Error("the same command line gave two results")
	}
	if r.Gateways != 2 {
		t.Errorf("%d gateways", r.Gateways)
	}
	for i, p := range r.Policies {
		for _, s := range p.Seeds {
			if scattered := s.HomesPerSession > 1; scattered != (i == 0) || s.HomesPerSession < 1 || s.HomesPerSession > 2 {
				t.Errorf("%s, seed %d: %v homes a session", p.Policy, s.Seed, s.HomesPerSession)
			}
		}
	}
	for _, p := range replayJSON(t, append(args, "--deal", "session")...).Policies {
		for _, s := range p.Seeds {
			if s.HomesPerSession != 1 || s.Moves != 0 {
				t.Errorf("%s, a session to one gateway, seed %d: %v homes a session", p.Policy, s.Seed, s.HomesPerSession)
			}
		}
	}
	agreed := replayJSON(t, "--policy", "sticky_least_loaded", "--config", `{"agreement":{"kind":"etcd"}}`, "--gateways", "2", "--deal", "random",
		"--etcd-latency", "3ms")
	for _, s := range agreed.Policies[0].Seeds {
		if s.HomesPerSession != 1 || s.Moves != 0 || s.Reasons["placed"] != 8 {
			t.Errorf("by etcd, seed %d: %v homes a session, reasons %v", s.Seed, s.HomesPerSession, s.Reasons)
		}
	}
	if fact := (replay.Fact{Name: "agreement", Value: "etcd, answers after 3ms"}); !slices.Contains(agreed.Setup, fact) {
		t.Errorf("%v lacks %v", agreed.Setup, fact)
	}
	if one := replayJSON(t, "--policy", "session_hash"); one.Gateways != 0 || one.Policies[0].Seeds[0].HomesPerSession != 0 {
		t.Errorf("one gateway: %d, %v homes", one.Gateways, one.Policies[0].Seeds[0].HomesPerSession)
	}
}
