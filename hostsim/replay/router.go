// Package replay sends recorded sessions to simulated model servers, through whatever decides which server a turn goes to,
// on a clock of its own: hours of a fleet pass in seconds, the same way every time.
package replay

import "time"

// Router decides where turns go: a gateway with the plugin in it, a policy in this process, or something that is no
// gateway at all. One Router is one gateway. Calls come one at a time and in the order of time.
type Router interface {
	// Turn decides a turn at now. The returned ticket goes to Done when the turn has ended. replica is an index into the
	// fleet (of Members); -1 means that no replica is named. Only a Waiter may leave it open.
	Turn(now time.Duration, t *Turn) (d Decision, err error)
	// Done says that the turn has ended, with an HTTP status; 0 for a connection that broke.
	Done(now time.Duration, d Decision, status int) error
	// Finish releases a session.
	Finish(now time.Duration, session string) error
	// Members tells the router the fleet: which replicas there are now, and how each stands.
	Members(now time.Duration, fleet []Member) error
	// Close frees what the router holds.
	Close() error
}

// Waiter is a Router that asks others about turns, whose answers take time on the replay's clock: a turn waits meanwhile. It
// is advanced to each of its own events when that falls due, and not when it is next asked something, so that what several
// gateways share hears of all of them in the order of time.
type Waiter interface {
	Router
	// Advance moves the router's clock to now, with what falls due on the way.
	Advance(now time.Duration)
	// Due is when something will happen in the router by itself, and whether anything will.
	Due() (at time.Duration, ok bool)
	// Made returns the decisions that Turn left open and that have been made since, each with the ticket of its Turn.
	Made(now time.Duration) ([]Decision, error)
}

// Decision is where a turn goes.
type Decision struct {
	// Open says that there is no decision yet: it comes by Waiter.Made. Of the others only Ticket counts.
	Open bool
	// Replica is an index into the fleet, or -1.
	Replica int
	// Reason is one of the plugin's reasons, or the router's own word.
	Reason string
	// Ticket is the router's own note, returned to it by Done.
	Ticket any
}

// Turn is what a router sees of a turn. It is valid during the call.
type Turn struct {
	Session string
	// Client is the number of the client process that sends the turn, from 0: one of Campaign.Clients, drawn for each turn.
	Client int
	// First is true for a session's first turn.
	First bool
	// Prompt is the prompt's length in tokens, Blocks its content ids (blocks of BlockTokens each).
	Prompt, BlockTokens int
	Blocks              []uint64
}

// Member is one replica as a router knows it.
type Member struct {
	// Address is the replica's IP:PORT, unique in the fleet.
	Address string
	// Weight is 1 or more.
	Weight int
	// Gone replicas are no members any more; Draining ones keep their sessions and take no new ones.
	Gone, Draining bool
}
