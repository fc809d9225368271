// Package policytest runs conversations between clients and a pool of replicas,
// written as text, against anything that routes sessions: the pure policy, or
// the plugin's binary in a simulated gateway. One script then holds both to the
// same behaviour.
//
// A script is a transcript. Lines that start with "> " are commands, the lines
// below a command are what it printed when the script was recorded:
//
//	# Prose that says what the cases show.
//
//	case same session sticky
//	> replicas a b c
//	> turn s1
//	s1 placed b
//	> open
//	a 0, b 1, c 0
//
// The commands are:
//
//	options KEY=VALUE...    timeout=2h max_sessions=100000 max_id_bytes=256
//	replicas NAME...        the pool's members: a, b:unhealthy, c:draining*2 (weight 2)
//	pool NAME               what follows concerns that pool; at first "default"
//	turn ID...              one turn each, in order; prints "ID REASON REPLICA"
//	together ID...          turns that may overlap; prints how many for each reason
//	keyless [N]             requests without an id; prints the replicas, or counts for N
//	finish ID...            the sessions end
//	advance DURATION        time passes
//	sweep                   periodic work runs
//	open                    prints open sessions of each member, in the order of replicas
//
// An ID such as s1..s60 stands for sixty ids. Replica names are single letters;
// Address maps them to addresses, which every target must use as they are, with
// keys made of the id's bytes alone: ties are broken by a hash of both, so that
// all targets print the same names.
package policytest

import (
	"fmt"
	"time"
)

// Target is what a script is run against: one gateway with its pools, empty at
// first. A target fails its own test when it cannot do what is asked. It is
// called from one goroutine.
type Target interface {
	// Configure sets the options and members of a pool; pools that it does not
	// name stay as they are, and so do sessions.
	Configure(pool string, options Options, replicas []Replica)
	// Turn sends one turn of the session.
	Turn(pool, id string) Decision
	// Together sends one turn for each id. They may overlap, and where the
	// target has several workers they should.
	Together(pool string, ids []string) []Decision
	// Keyless sends a request without a session id.
	Keyless(pool string) Decision
	// Finish releases the session, known or not.
	Finish(pool, id string)
	// Advance moves the clock. No periodic work runs meanwhile: a script that
	// needs it says sweep.
	Advance(d time.Duration)
	// Sweep lets periodic work run once at least. It may move the clock by a
	// minute or two; no script depends on less.
	Sweep()
	// Open returns the open sessions of each address.
	Open(pool string, addresses []string) []int
}

// Options are the settings that scripts vary.
type Options struct {
	Timeout     time.Duration // idle timeout; 2h unless a script says otherwise
	MaxSessions int           // bound on recorded sessions; 100000 likewise
	MaxIDBytes  int           // longest id that is recorded; 256 likewise
}

// Replica is a member of a pool.
type Replica struct {
	Address string
	State   string // active, draining or unhealthy
	Weight  uint32 // 1 or more
}

// Decision is where a turn went.
type Decision struct {
	Address string // empty where no replica was named
	Reason  string // as debug headers and metrics spell it
}

// Address returns the address of the replica that scripts call name, which is a
// letter from a to z.
func Address(name string) string {
	return fmt.Sprintf("10.0.0.%d:8000", name[0]-'a'+1)
}
