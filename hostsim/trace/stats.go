package trace

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"
)

// ErrBlockSize is wrapped by the error for a block size that a trace's blocks do not make up.
var ErrBlockSize = errors.New("trace: block size")

// Stats is what a trace holds, and how much of its prompts a prefix cache could serve at best. Token counts are sums of
// the recorded ones; rates are shares between 0 and 1, and 0 for an empty trace.
type Stats struct {
	Sessions int `json:"sessions"`
	// SubAgents are those of the sessions that have a parent.
	SubAgents int `json:"sub_agents"`
	// Groups counts the names of groups, not the sessions in them.
	Groups          int `json:"groups"`
	Turns           int `json:"turns"`
	PromptTokens    int `json:"prompt_tokens"`
	GeneratedTokens int `json:"generated_tokens"`
	// TurnsPerSession, Context (a prompt's tokens), Final (the last prompt's tokens of each session) and Think are
	// distributions: Think in seconds, over the turns in which it is known and not zero.
	TurnsPerSession Distribution `json:"turns_per_session"`
	Context         Distribution `json:"context_tokens"`
	Final           Distribution `json:"final_context_tokens"`
	Think           Distribution `json:"think_seconds"`
	// BlockTokens is the size of the trace's blocks; 0 if the sessions differ.
	BlockTokens int `json:"block_tokens"`
	// BlockReferences, UniqueBlocks and RepeatedBlocks count ids as they stand in the trace, those of blocks that are
	// not full too where the trace has them.
	BlockReferences int `json:"block_references"`
	UniqueBlocks    int `json:"unique_blocks"`
	RepeatedBlocks  int `json:"repeated_blocks"`
	// CacheBlockTokens is the size of the blocks that the two rates below are for.
	CacheBlockTokens int `json:"cache_block_tokens"`
	// IdealHitRate is the share of the prompt tokens that one cache without bound would serve, if no two requests ran at
	// the same time (IdealCache): all full blocks that an earlier prompt had, but for a prompt's last token. Where a session
	// replays its own output, that counts too.
	IdealHitRate float64 `json:"ideal_hit_rate"`
	// SessionHitRate is the same with a cache for each session alone: what is left where sessions share nothing.
	SessionHitRate float64 `json:"session_hit_rate"`
}

// Distribution tells of many values.
type Distribution struct {
	Mean float64 `json:"mean"`
	P50  float64 `json:"p50"`
	Max  float64 `json:"max"`
}

// Counter adds sessions up to Stats. It holds the set of block ids, half a byte for each where ids follow on and some 40
// for each where they are hashes; names of groups; and the different values of each distribution. The zero value counts
// at the trace's own block size. Not safe for concurrent use.
type Counter struct {
	// BlockTokens is the block size that the hit rates are for, a multiple of the trace's. Zero is the trace's.
	BlockTokens int

	s                  Stats
	groups             map[string]struct{}
	all, own           IdealCache
	tails              blockSet
	hit, ownHit        int
	turns, ctx, final  values
	think              values
	blockTokensDiffers bool
}

// Add counts a session. Its error wraps ErrBlockSize, and then the session is not counted.
func (c *Counter) Add(s Session) error {
	size := s.BlockTokens
	if c.BlockTokens > 0 {
		if size = c.BlockTokens; size%s.BlockTokens != 0 {
			return fmt.Errorf("%w: %d is not a multiple of the trace's %d tokens", ErrBlockSize, c.BlockTokens, s.BlockTokens)
		}
	}
	c.s.Sessions++
	if s.Parent != "" {
		c.s.SubAgents++
	}
	if s.Group != "" {
		if c.groups == nil {
			c.groups = map[string]struct{}{}
		}
		c.groups[s.Group] = struct{}{}
	}
	if c.s.BlockTokens != s.BlockTokens && c.s.Sessions > 1 {
		c.blockTokensDiffers = true
	}
	c.s.BlockTokens = s.BlockTokens
	c.turns.add(len(s.Turns))
	c.final.add(s.Turns[len(s.Turns)-1].Input)
	for _, t := range s.Turns {
		c.addTurn(t)
	}
	c.own.clear()
	c.hit += c.all.Add(s, size)
	c.ownHit += c.own.Add(s, size)
	return nil
}

// AddAll counts all remaining sessions of r. It stops at the first error, a bad line too.
func (c *Counter) AddAll(r Reader) error {
	for {
		s, err := r.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err == nil {
			err = c.Add(s)
		}
		if err != nil {
			return err
		}
	}
}

func (c *Counter) addTurn(t Turn) {
	c.s.Turns++
	c.s.PromptTokens += t.Input
	c.s.GeneratedTokens += t.Output
	c.ctx.add(t.Input)
	if t.Think > 0 {
		c.think.add(int(t.Think / time.Millisecond))
	}
	c.s.BlockReferences += BlockCount(t.Blocks)
	if t.Tail != 0 {
		c.s.BlockReferences++
		c.tails.add([]Run{{t.Tail, 1}}, 1)
	}
}

// Stats returns the sums so far. It sorts the different values of each distribution.
func (c *Counter) Stats() Stats {
	s := c.s
	s.Groups = len(c.groups)
	s.TurnsPerSession, s.Context, s.Final = c.turns.distribution(1), c.ctx.distribution(1), c.final.distribution(1)
	s.Think = c.think.distribution(1e-3)
	s.UniqueBlocks = c.all.ids.size + c.tails.without(&c.all.ids)
	s.RepeatedBlocks = s.BlockReferences - s.UniqueBlocks
	if c.blockTokensDiffers {
		s.BlockTokens = 0
	}
	if s.CacheBlockTokens = c.BlockTokens; s.CacheBlockTokens == 0 {
		s.CacheBlockTokens = s.BlockTokens
	}
	if s.PromptTokens > 0 {
		s.IdealHitRate = float64(c.hit) / float64(s.PromptTokens)
		s.SessionHitRate = float64(c.ownHit) / float64(s.PromptTokens)
	}
	return s
}

// values counts how often each value was there.
type values struct{ counts map[int]int }

func (v *values) add(value int) {
	if v.counts == nil {
		v.counts = map[int]int{}
	}
	v.counts[value]++
}

// distribution sums up; unit is what a value of 1 stands for. The median is the lower one of two.
func (v *values) distribution(unit float64) Distribution {
	sorted := slices.Sorted(maps.Keys(v.counts))
	if len(sorted) == 0 {
		return Distribution{}
	}
	total, sum := 0, 0.0
	for _, value := range sorted {
		total += v.counts[value]
		sum += float64(value) * float64(v.counts[value])
	}
	d := Distribution{Mean: sum / float64(total) * unit, Max: float64(sorted[len(sorted)-1]) * unit}
	below := 0
	for _, value := range sorted {
		if below += v.counts[value]; 2*below >= total {
			d.P50 = float64(value) * unit
			break
		}
	}
	return d
}
