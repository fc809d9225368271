package replica

import (
	"errors"
	"fmt"
	"math"
)

// ErrFit is wrapped by the errors of FitRoofline about what it was asked for.
var ErrFit = errors.New("replica: fit")

// parameter is a number that fitLog chooses.
type parameter struct {
	Name string
	// Least and Most bound it; Start, between them, is where the search begins.
	Least, Most, Start float64
}

// fitCalls is how often fitLog plays a log for each parameter, twice.
const fitCalls = 50

// fitEnough is when a search is over: the mean square of the errors differs no more, which is less than 0.01% of a latency.
const fitEnough = 1e-8

// fitLog chooses the values of parameters for which logMiss is least. step makes a model from values, in their order;
// c.Step is not used.
func fitLog(c EngineConfig, log []EngineRecord, parameters []parameter, step func(values []float64) StepModel, counts func(i int) bool) ([]float64, error) {
	if len(log) == 0 || len(parameters) == 0 {
		return nil, fmt.Errorf("%w: %d requests and %d parameters; wants one or more of each", ErrFit, len(log), len(parameters))
	}
	start := make([]float64, len(parameters))
	for i, p := range parameters {
		if !(p.Least < p.Most && p.Least <= p.Start && p.Start <= p.Most) {
			return nil, fmt.Errorf("%w: %s begins at %v in %v to %v; wants a start within a range", ErrFit, p.Name, p.Start, p.Least, p.Most)
		}
		start[i] = (p.Start - p.Least) / (p.Most - p.Least)
	}
	values := func(x []float64) []float64 {
		v := make([]float64, len(x))
		for i, p := range parameters {
			v[i] = p.Least + x[i]*(p.Most-p.Least)
		}
		return v
	}
	var failed error
	miss := func(x []float64) float64 {
		c.Step = step(values(x))
		played, err := PlayLog(c, log)
		if err != nil {
			failed = err
			return math.Inf(1)
		}
		return logMiss(log, played, counts)
	}
	if miss(start); failed != nil {
		return nil, failed
	}
	// A simplex that became flat misses the way on; a new one from where it ended finds it.
	calls := fitCalls * len(parameters)
	best, _ := nelderMead(miss, start, calls, fitEnough)
	best, _ = nelderMead(miss, best, calls, fitEnough)
	return values(best), failed
}

// logMiss is the mean over the requests that count of the squared relative errors of TPOT and E2E. What the log has as
// zero is not compared.
func logMiss(log, played []EngineRecord, counts func(i int) bool) float64 {
	sum, n := 0.0, 0
	for i := range log {
		if counts != nil && !counts(i) {
			continue
		}
		n++
		if want := log[i].TPOT(); want > 0 {
			sum += square(float64(played[i].TPOT())/float64(want) - 1)
		}
		if want := log[i].E2E(); want > 0 {
			sum += square(float64(played[i].E2E())/float64(want) - 1)
		}
	}
	return sum / float64(max(n, 1))
}

func square(x float64) float64 { return x * x }
