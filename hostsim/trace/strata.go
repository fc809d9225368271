package trace

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
)

// ErrStrata is wrapped by the error for strata that cannot be meant.
var ErrStrata = errors.New("trace: strata")

// Stratum is a part of the sessions: those of Min to Max turns are Weight of the sum of all weights.
type Stratum struct{ Min, Max, Weight int }

// String returns it as ParseStrata reads it.
func (s Stratum) String() string { return fmt.Sprintf("%d-%d:%d", s.Min, s.Max, s.Weight) }

// CampaignStrata are the sessions by turns of a published campaign of RL rollouts: 610 in all. GenerateOptions says more.
func CampaignStrata() []Stratum {
	return []Stratum{{6, 15, 106}, {16, 30, 222}, {31, 50, 198}, {51, 75, 64}, {76, 99, 20}}
}

const maxTurns = 100_000

// ParseStrata reads "6-15:106,16-30:222": turns from-to:weight.
func ParseStrata(text string) ([]Stratum, error) {
	var strata []Stratum
	for part := range strings.SplitSeq(text, ",") {
		turns, weight, ok1 := strings.Cut(strings.TrimSpace(part), ":")
		from, to, ok2 := strings.Cut(turns, "-")
		var s Stratum
		var errs [3]error
		s.Min, errs[0] = strconv.Atoi(from)
		s.Max, errs[1] = strconv.Atoi(to)
		s.Weight, errs[2] = strconv.Atoi(weight)
		if !ok1 || !ok2 || errors.Join(errs[:]...) != nil {
			return nil, fmt.Errorf("%w: %q is not FROM-TO:WEIGHT, as in 6-15:106", ErrStrata, part)
		}
		strata = append(strata, s)
	}
	return strata, checkStrata(strata)
}

func checkStrata(strata []Stratum) error {
	if len(strata) == 0 {
		return fmt.Errorf("%w: none", ErrStrata)
	}
	for _, s := range strata {
		if s.Min < 1 || s.Max < s.Min || s.Max > maxTurns || s.Weight < 1 || s.Weight > maxTokens {
			return fmt.Errorf("%w: %v: turns go from 1 to %d, weights from 1 to %d", ErrStrata, s, maxTurns, maxTokens)
		}
	}
	return nil
}

func totalWeight(strata []Stratum) int {
	total := 0
	for _, s := range strata {
		total += s.Weight
	}
	return total
}

// strataSkew bends the spread inside of a stratum towards its shorter end, so that the campaign's strata add up to its
// turns.
const strataSkew = 1.186

// turnsAt returns the turns of the session at the share u of all, from 0 up to 1, in the order of their length.
func turnsAt(strata []Stratum, u float64) int {
	at := u * float64(totalWeight(strata))
	for i, s := range strata {
		if at < float64(s.Weight) || i == len(strata)-1 {
			share := min(at/float64(s.Weight), math.Nextafter(1, 0))
			return s.Min + int(float64(s.Max-s.Min+1)*math.Pow(share, strataSkew))
		}
		at -= float64(s.Weight)
	}
	return 0 // checkStrata has seen one
}
