package replay

import "math"

// millionth is v to six decimals: what is beyond is noise of a simulation, and was most of a result's JSON.
func millionth(v float64) float64 { return math.Round(v*1e6) / 1e6 }

// round rounds what there is much of.
func (r *SeedResult) round() {
	for i := range r.Samples {
		s := &r.Samples[i]
		s.At, s.HitRate = millionth(s.At), millionth(s.HitRate)
		for k, v := range s.KVUse {
			s.KVUse[k] = millionth(v)
		}
	}
	for i := range r.Replicas {
		r.Replicas[i].Busy = millionth(r.Replicas[i].Busy)
	}
	for _, s := range r.Slowest {
		for i := range s.Turns {
			t := &s.Turns[i]
			t.Sent, t.Admitted, t.First, t.End = millionth(t.Sent), millionth(t.Admitted), millionth(t.First), millionth(t.End)
		}
	}
}
