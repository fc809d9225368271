package trace

import (
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
)

// ErrGenerate is wrapped by the error for options that cannot be meant.
var ErrGenerate = errors.New("trace: generate")

// GenerateOptions describe synthetic sessions. The zero value of each is its default, and all defaults together come to
// the figures of a published campaign of RL rollouts: 610 sessions; 19,582 turns, to .1%; 1.57 G prompt tokens and 4.8 M
// generated, to 3%; first prompts of 10.6 to 12.2 thousand tokens, last ones of 81 thousand in the median and 207
// thousand at most. Between the first and the last prompt a session's context grows as the square root of its turns,
// which is what makes these figures fit each other: with steady growth they would add up to about a fifth less.
type GenerateOptions struct {
	// Seed: equal options give equal sessions.
	Seed uint64
	// Sessions is their number. Default: the sum of the weights of Strata.
	Sessions int
	// Strata are the sessions by their turns, exactly: not drawn, but dealt. Default: CampaignStrata.
	Strata []Stratum
	// FirstPrompt are the fewest and the most tokens of a first prompt. Default: 10,600 and 12,200.
	FirstPrompt [2]int
	// Growth is how many tokens longer the last prompt is than the first, for each turn between them, in the median of a
	// lognormal distribution of sigma 0.15. Default: 2,520.
	Growth int
	// MaxContext bounds a prompt, in tokens. Default: 207,000.
	MaxContext int
	// Output is the mean of the tokens generated in a turn, from a lognormal distribution of sigma 0.8. Default: 245.
	Output int
	// System is how many tokens of the first prompt are the same in all sessions. Default: 0.
	System int
	// GroupSize is how many samples of one task follow each other, with one first prompt. Default: 1, which is no groups.
	GroupSize int
	// BlockTokens is the size of a block. Default: DefaultBlockTokens.
	BlockTokens int
}

// Of the published campaign: by how many tokens a prompt is longer than the one before, and how many a turn generates.
const (
	campaignGrowth = 2520
	campaignOutput = 245
)

const (
	growthSigma    = 0.15
	outputSigma    = 0.8
	incrementSigma = 1.0 // how unevenly the context grows from turn to turn
)

// Generator yields synthetic sessions, which replay what they generate. It holds one at a time, and can be read from
// again only by making it anew. Not safe for concurrent use.
type Generator struct {
	o    GenerateOptions
	next int
}

// Generate returns a reader of synthetic sessions. Its error wraps ErrGenerate or ErrStrata.
func Generate(o GenerateOptions) (*Generator, error) {
	o = o.WithDefaults()
	if err := checkStrata(o.Strata); err != nil {
		return nil, err
	}
	lo, hi := o.FirstPrompt[0], o.FirstPrompt[1]
	switch {
	case o.Sessions < 1 || o.Sessions >= maxTokens:
		return nil, fmt.Errorf("%w: %d sessions; 1 to %d are allowed", ErrGenerate, o.Sessions, maxTokens-1)
	case lo < 1 || hi < lo || hi > o.MaxContext || o.MaxContext > maxTokens/2:
		return nil, fmt.Errorf("%w: first prompts of %d to %d tokens, contexts of at most %d; none is below 1, below the one before it or above %d",
			ErrGenerate, lo, hi, o.MaxContext, maxTokens/2)
	case o.Growth < 0 || o.Growth > maxTokens || o.Output < 0 || o.Output > maxTokens/maxTurns || o.GroupSize < 1 || o.BlockTokens < 1:
		return nil, fmt.Errorf("%w: growth %d, output %d, groups of %d, blocks of %d tokens; growth goes from 0 to %d, output from 0 to %d, the others from 1",
			ErrGenerate, o.Growth, o.Output, o.GroupSize, o.BlockTokens, maxTokens, maxTokens/maxTurns)
	case o.System < 0 || o.System > lo:
		return nil, fmt.Errorf("%w: a system prompt of %d tokens; 0 to the %d of the shortest first prompt are allowed", ErrGenerate, o.System, lo)
	}
	return &Generator{o: o}, nil
}

// WithDefaults returns the options with the defaults in place of zeros.
func (o GenerateOptions) WithDefaults() GenerateOptions {
	if o.Strata == nil {
		o.Strata = CampaignStrata()
	}
	if o.FirstPrompt == [2]int{} {
		o.FirstPrompt = [2]int{10_600, 12_200}
	}
	for _, d := range []struct {
		field *int
		value int
	}{{&o.Sessions, totalWeight(o.Strata)}, {&o.Growth, campaignGrowth}, {&o.MaxContext, 207_000}, {&o.Output, campaignOutput}, {&o.GroupSize, 1}, {&o.BlockTokens, DefaultBlockTokens}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	return o
}

// Sessions returns how many there are in all.
func (g *Generator) Sessions() int { return g.o.Sessions }

// Next returns the next session, or io.EOF after the last.
func (g *Generator) Next() (Session, error) {
	i := g.next
	if i == g.o.Sessions {
		return Session{}, io.EOF
	}
	g.next++
	task := i / g.o.GroupSize
	// A source for each task and each session: what one draws has no part in the others.
	ofTask := rand.New(rand.NewPCG(g.o.Seed, uint64(task)<<1))
	own := rand.New(rand.NewPCG(g.o.Seed, uint64(i)<<1|1))
	s := Session{ID: strconv.Itoa(i), System: g.o.System, BlockTokens: g.o.BlockTokens, Replays: true}
	if g.o.GroupSize > 1 {
		s.Group = strconv.Itoa(task)
		s.ID = s.Group + "/" + strconv.Itoa(i%g.o.GroupSize)
	}
	first := g.o.FirstPrompt[0] + ofTask.IntN(g.o.FirstPrompt[1]-g.o.FirstPrompt[0]+1)
	s.Turns = g.turns(own, first, turnsAt(g.o.Strata, g.share(i)))
	nameBlocks(&s, first, uint64(task)+1, uint64(i)+1)
	return s, nil
}

// share returns where session i lies among all, by turns: each place once, in an order that depends on the seed.
func (g *Generator) share(i int) float64 {
	n := uint64(g.o.Sessions)
	// Steps of about the golden ratio visit all places when step and n have no common divisor.
	step := max(1, uint64(float64(n)*0.6180339887))
	for gcd(step, n) != 1 {
		step++
	}
	place := (uint64(i)*step + rand.New(rand.NewPCG(g.o.Seed, 0)).Uint64N(n)) % n
	return (float64(place) + 0.5) / float64(n)
}

func gcd(a, b uint64) uint64 {
	for b != 0 {
		a, b = b, a%b
	}
	return a
}

// turns draws a session of n turns.
func (g *Generator) turns(r *rand.Rand, first, n int) []Turn {
	last := float64(first) + float64(g.o.Growth*(n-1))*math.Exp(growthSigma*r.NormFloat64())
	last = min(last, float64(g.o.MaxContext))
	grows := make([]float64, n) // by how much turn i's prompt is longer than the one before, as shares
	sum := 0.0
	for i := 1; i < n; i++ {
		grows[i] = (math.Sqrt(float64(i)) - math.Sqrt(float64(i-1))) * math.Exp(incrementSigma*r.NormFloat64())
		sum += grows[i]
	}
	turns := make([]Turn, n)
	input := first
	median := float64(g.o.Output) / math.Exp(outputSigma*outputSigma/2)
	for i := range turns {
		t := &turns[i]
		if i > 0 {
			// What was generated is in the next prompt, though it were more than the context grows by; at the bound less is.
			before := &turns[i-1]
			grown := min(max(before.Output, int((last-float64(first))*grows[i]/sum)), g.o.MaxContext-input)
			before.Output = min(before.Output, grown)
			input += grown
		}
		t.Input = input
		t.Output = max(1, int(math.Round(median*math.Exp(outputSigma*r.NormFloat64()))))
	}
	return turns
}
