package replica

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"
)

// rooflineFree are the numbers that FitRoofline can choose.
var rooflineFree = []string{"base", "mfu", "weight_read", "kv_read", "link"}

// FitRoofline returns c, whose Step is a *Roofline, with another Roofline with which the engine's latencies are most like
// the log's: least in the mean over the requests is the sum of the squares of the relative errors of TPOT and of E2E. Of
// the requests counts says which are compared; nil compares all, and all are played.
//
// Chosen are Base, MFU, WeightRead, KVRead and, with more than one GPU, GPU.Link, from those of c on: when the log does not
// tell them apart, several sets of them are about as good, and where the search begins decides. Those that hold names
// ("base", "mfu", "weight_read", "kv_read", "link") stay as they are. Base is looked for up to the log's median TPOT, Link
// up to the GPU's bandwidth. The same arguments give the same values. Errors: ErrFit, and those of PlayLog. It plays the log
// at most some 100 times for each number that it chooses.
func FitRoofline(c EngineConfig, log []EngineRecord, hold []string, counts func(i int) bool) (EngineConfig, error) {
	given, ok := c.Step.(*Roofline)
	if !ok {
		return EngineConfig{}, fmt.Errorf("%w: a step of type %T; wants a *Roofline", ErrFit, c.Step)
	}
	for _, name := range hold {
		if !slices.Contains(rooflineFree, name) {
			return EngineConfig{}, fmt.Errorf("%w: cannot hold %q; there are %s", ErrFit, name, strings.Join(rooflineFree, ", "))
		}
	}
	_, tpot, _ := LogLatency(log)
	most := max(tpot.P50, given.Base, time.Millisecond).Seconds()
	all := []parameter{
		{"base", 0, most, given.Base.Seconds()},
		{"mfu", min(.05, given.MFU), 1, given.MFU},
		{"weight_read", min(.2, given.WeightRead), 1, given.WeightRead},
		{"kv_read", min(.1, given.KVRead), 1, given.KVRead},
	}
	if given.GPUs > 1 { // of any order of magnitude
		all = append(all, parameter{"link", min(9, math.Log10(given.GPU.Link)), math.Log10(max(given.GPU.Bandwidth, 2*given.GPU.Link)), math.Log10(given.GPU.Link)})
	}
	free := slices.DeleteFunc(slices.Clone(all), func(p parameter) bool { return slices.Contains(hold, p.Name) })
	model := func(values []float64) *Roofline {
		m := *given
		for i, p := range free {
			switch v := values[i]; p.Name {
			case "base":
				m.Base = seconds(v)
			case "mfu":
				m.MFU = v
			case "weight_read":
				m.WeightRead = v
			case "kv_read":
				m.KVRead = v
			case "link":
				m.GPU.Link = math.Pow(10, v)
			}
		}
		return &m
	}
	if len(free) == 0 {
		return c, nil
	}
	values, err := fitLog(c, log, free, func(v []float64) StepModel { return model(v) }, counts)
	if err != nil {
		return EngineConfig{}, err
	}
	c.Step = model(values)
	return c, nil
}
