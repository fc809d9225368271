package replay

import (
	"hash/fnv"
	"math/rand/v2"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// openFamily holds a place under the cap until its last session has ended.
type openFamily struct {
	sessions family
	// left counts sessions that have not ended, whether begun or not; begun marks sub-agents.
	left  int
	begun []bool
}

// openSession is a session between its first sending and its end. Its memory is used again for later ones.
type openSession struct {
	slot   int
	trace  *trace.Session
	family *openFamily
	// turn is the one that is on its way or will be next.
	turn  int
	begun time.Duration
	pcg   rand.PCG
	rand  *rand.Rand
	// way draws clients and gateways: how many there are of them changes nothing else.
	wayPCG rand.PCG
	way    *rand.Rand

	// Of the turn: when it was first sent, how often the client sent it, how often the router was asked since.
	sent            time.Duration
	attempts, tries int
	gateway, client int
	replica         int
	decision        Decision
	decided         bool // decision is the router's and waits for Done
	request         replica.Request

	// last is the replica that served the turn before, or -1; seen has a bit for each replica that served any.
	last  int
	seen  []uint64
	homes []home
	spans []TurnSpan
}

// reuse makes the slot a new session's. What is drawn for it depends on seed and session alone.
func (s *openSession) reuse(t *trace.Session, f *openFamily, seed uint64) {
	h := fnv.New64a()
	h.Write([]byte(t.ID))
	s.trace, s.family, s.turn, s.last = t, f, 0, -1
	s.pcg.Seed(seed, h.Sum64())
	s.wayPCG.Seed(seed, ^h.Sum64())
	clear(s.seen)
	s.homes = s.homes[:0]
	if s.spans = s.spans[:0]; s.spans == nil {
		s.spans = []TurnSpan{} // a list in JSON, even where no turn is served
	}
	s.resetTurn()
}

func (s *openSession) resetTurn() {
	s.attempts, s.tries, s.decided, s.decision, s.replica = 0, 0, false, Decision{}, -1
}

// visit notes that replica i serves a turn and tells whether it is the first one.
func (s *openSession) visit(i int) bool {
	for len(s.seen) <= i/64 {
		s.seen = append(s.seen, 0)
	}
	first := s.seen[i/64]&(1<<(i%64)) == 0
	s.seen[i/64] |= 1 << (i % 64)
	return first
}

// home is a replica that serves a session's turns, with the number of its crashes then.
type home struct {
	replica int
	round   uint16
}

// dwell notes where s's turn was served. A replica takes the place of one that the session has lost: that has gone, is down or
// was. Any other is a home more.
func (r *run) dwell(s *openSession) {
	if r.Gateways == 1 {
		return
	}
	now := home{s.replica, r.servers[s.replica].round}
	lost := -1
	for i, h := range s.homes {
		if h.replica == now.replica {
			s.homes[i] = now
			return
		}
		if by := r.servers[h.replica]; lost < 0 && (!by.takes() || by.round != h.round) {
			lost = i
		}
	}
	if lost >= 0 {
		s.homes[lost] = now
		return
	}
	s.homes = append(s.homes, now)
}

// keys appends the engine's keys of the session's turn: the prompt's, and those of what will be generated where the trace
// tells. ids is scratch.
func keys(dst, ids []uint64, s *trace.Session, turn, blockTokens int) (out, scratch []uint64) {
	t := &s.Turns[turn]
	blocks, tokens := t.Blocks, t.Input
	if s.Replays && turn+1 < len(s.Turns) {
		if next := &s.Turns[turn+1]; next.Input >= t.Input+t.Output {
			blocks, tokens = next.Blocks, t.Input+t.Output
		}
	}
	idTokens := s.BlockTokens
	if blockTokens%idTokens == 0 {
		// The id of a block's last tokens tells all of it.
		ids = appendEvery(ids[:0], blocks, blockTokens/idTokens)
		idTokens = blockTokens
	} else {
		ids = trace.AppendBlocks(ids[:0], blocks)
	}
	return replica.AppendKeys(dst, ids, idTokens, blockTokens, tokens), ids
}

// appendEvery appends the last of every n of the ids that runs stand for. O(runs and ids that are appended).
func appendEvery(dst []uint64, runs []trace.Run, n int) []uint64 {
	skip := n - 1
	for _, r := range runs {
		for ; skip < r.Count; skip += n {
			dst = append(dst, r.First+uint64(skip))
		}
		skip -= r.Count
	}
	return dst
}
