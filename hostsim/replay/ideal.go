package replay

import (
	"errors"
	"io"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// Ideal reads a trace and returns the hit rate of one cache without bound for everybody, in blocks of blockTokens, for
// turns that come one after another in the trace's order (trace.IdealCache): no fleet does better. Zero for an empty trace.
// Memory: a set of all ids. Errors: ErrCampaign.
func Ideal(reader trace.Reader, blockTokens int) (float64, error) {
	source := newSource(reader, true, nil)
	var cache trace.IdealCache
	var prompt, cached int64
	for {
		s, err := source.session()
		if errors.Is(err, io.EOF) {
			return ratio(float64(cached), float64(prompt)), nil
		}
		if err != nil {
			return 0, err
		}
		for _, t := range s.Turns {
			prompt += int64(t.Input)
		}
		cached += int64(cache.Add(*s, blockTokens))
	}
}
