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
//	policy NAME             sticky_least_loaded at first
//	options KEY=VALUE...    timeout=2h max_sessions=100000 max_id_bytes=256
//	                        load_factor=1.25 cache_threshold=0.3
//	                        balance_abs=64 balance_rel=1.5 max_prefixes=65536
//	                        failures=3 cooldown=10s max_cooldown=5m
//	replicas NAME...        the pool's members: a, b:unhealthy, c:draining*2 (weight 2)
//	pool NAME               what follows concerns that pool; at first "default"
//	turn ID...              one turn each, in order; prints "ID REASON REPLICA"
//	tally [every=DURATION] [rounds=N] ID...
//	                        one turn each, in order, with time passing after each,
//	                        N times over; prints how many went where and why
//	serial ID...            the same, each session finished before the next
//	prompt ID PART...       a turn with a prompt made of parts: sys*4000 is 4000
//	                        bytes of it; parts of one name begin alike, those of
//	                        different names do not
//	served ID NAME          a turn whose replica fails, and that NAME answers after
//	                        the gateway's retry
//	begin ID..., end ID...  a turn that runs from here to there
//	together ID...          turns that may overlap; prints how many for each reason
//	keyless [N]             requests without an id; prints the replicas, or counts for N
//	finish ID...            the sessions end
//	fail NAME..., ok NAME...
//	                        from now on every turn that goes to these replicas
//	                        fails, or does well again
//	drain NAME..., undrain NAME...
//	                        an operator drains the replicas, or ends that
//	reset                   an operator ends all sessions of the pool
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
	// Prompt sends one turn of the session with that prompt: its bytes are those
	// that the prompt's prefixes are made of.
	Prompt(pool, id, prompt string) Decision
	// Served sends one turn of the session, which the replica it is sent to fails
	// and the one at address answers.
	Served(pool, id, address string) Decision
	// Begin sends one turn of the session that is answered, but not to the end,
	// until End. It is not called for a session whose turn runs already.
	Begin(pool, id string) Decision
	// End ends the turn that began.
	End(pool, id string)
	// Answer sets how the replica answers all turns that come to it from now on:
	// well, or with a status that counts as its failure. It answers at once.
	Answer(pool, address string, well bool)
	// Drain begins or ends an operator's drain of the replica.
	Drain(pool, address string, drained bool)
	// Reset ends the pool's sessions.
	Reset(pool string)
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
