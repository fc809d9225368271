package main

import "sync/atomic"

const maxReplicas = 16

// ground is what the load knows of the replicas. An epoch is odd while something is done to a replica that may move its
// sessions, and another one afterwards: a session may move if and only if its replica's epoch is odd, or is not what it was at
// the session's last turn. closed counts alike the times in which a replica takes no new sessions.
type ground struct {
	epochs, closing [maxReplicas]atomic.Uint32
}

// snapshot is the ground at one moment.
type snapshot [maxReplicas]struct{ epoch, closing uint32 }

func (g *ground) look() (s snapshot) {
	for i := range s {
		s[i].epoch, s[i].closing = g.epochs[i].Load(), g.closing[i].Load()
	}
	return s
}

// disturbed reports whether something was done to any replica at some time since the snapshot.
func (g *ground) disturbed(s *snapshot) bool {
	for i := range s {
		if s[i].epoch%2 == 1 || g.epochs[i].Load() != s[i].epoch {
			return true
		}
	}
	return false
}

// unsteady reports whether a session whose last turn was sent at that epoch may leave the replica.
func (g *ground) unsteady(replica int, since uint32) bool {
	now := g.epochs[replica].Load()
	return now%2 == 1 || now != since
}

// closed reports whether the replica has taken no sessions ever since the snapshot.
func (g *ground) closed(s *snapshot, replica int) bool {
	return s[replica].closing%2 == 1 && g.closing[replica].Load() == s[replica].closing
}

// uneasy reports whether something is being done to a replica.
func (g *ground) uneasy() bool {
	for i := range g.epochs {
		if g.epochs[i].Load()%2 == 1 {
			return true
		}
	}
	return false
}
