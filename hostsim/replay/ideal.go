package replay

import (
	"errors"
	"io"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// Ideal reads a trace and returns the hit rate of one cache without bound for everybody, in blocks of blockTokens, for
// turns that come one after another in the trace's order: no fleet does better. Zero for an empty trace. Memory: a set of
// all keys. Errors: ErrCampaign.
func Ideal(reader trace.Reader, blockTokens int) (float64, error) {
	source := newSource(reader, true, nil)
	known := map[uint64]struct{}{}
	var prompt, cached int64
	var ks, ids []uint64
	for {
		s, err := source.session()
		if errors.Is(err, io.EOF) {
			return ratio(float64(cached), float64(prompt)), nil
		}
		if err != nil {
			return 0, err
		}
		for i := range s.Turns {
			ks, ids = keys(ks[:0], ids, s, i, blockTokens)
			// The last token is computed in any case.
			limit, hit := (s.Turns[i].Input-1)/blockTokens, 0
			for hit < min(limit, len(ks)) {
				if _, ok := known[ks[hit]]; !ok {
					break
				}
				hit++
			}
			for _, k := range ks[hit:] {
				known[k] = struct{}{}
			}
			prompt += int64(s.Turns[i].Input)
			cached += int64(hit) * int64(blockTokens)
		}
	}
}
