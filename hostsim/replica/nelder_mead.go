package replica

import (
	"cmp"
	"math"
	"slices"
)

// nelderMead looks for the x in the unit cube at which f is least, beginning at x0 with steps of one fifth; f is called
// calls times, or a few more, or less when the corners of the simplex differ by no more than enough. It finds a local
// minimum. What leaves the cube is mirrored back: a simplex pressed against
// a side would become flat and stay there. Source: Nelder and Mead, A simplex method for function minimization, 1965,
// with the usual coefficients (1, 2, 1/2, 1/2).
func nelderMead(f func([]float64) float64, x0 []float64, calls int, enough float64) (best []float64, least float64) {
	type vertex struct {
		x []float64
		y float64
	}
	at := func(x []float64) vertex {
		calls--
		return vertex{x, f(intoCube(x))}
	}
	simplex := []vertex{at(slices.Clone(x0))}
	for i := range x0 {
		x := slices.Clone(x0)
		if x[i] += 0.2; x[i] > 1 {
			x[i] -= 0.4
		}
		simplex = append(simplex, at(x))
	}
	last := len(simplex) - 1
	order := func() {
		slices.SortStableFunc(simplex, func(a, b vertex) int { return cmp.Compare(a.y, b.y) })
	}
	for order(); calls > 0 && !(simplex[last].y-simplex[0].y <= enough); order() {
		centre := make([]float64, len(x0))
		for _, v := range simplex[:last] {
			for i := range centre {
				centre[i] += v.x[i] / float64(last)
			}
		}
		along := func(by float64) vertex { // 1 is the mirror image of the worst vertex
			x := slices.Clone(centre)
			for i := range x {
				x[i] += by * (centre[i] - simplex[last].x[i])
			}
			return at(x)
		}
		mirrored := along(1)
		switch {
		case mirrored.y < simplex[0].y:
			if further := along(2); further.y < mirrored.y {
				mirrored = further
			}
		case mirrored.y >= simplex[last-1].y:
			by := 0.5
			if mirrored.y >= simplex[last].y {
				by = -0.5
			}
			if closer := along(by); closer.y < mirrored.y {
				mirrored = closer
			}
			if mirrored.y >= simplex[last].y { // no better: everything closes in on the best
				for i := range simplex[1:] {
					x := simplex[i+1].x
					for j := range x {
						x[j] = (x[j] + simplex[0].x[j]) / 2
					}
					simplex[i+1] = at(x)
				}
				continue
			}
		}
		simplex[last] = mirrored
	}
	return intoCube(simplex[0].x), simplex[0].y
}

// intoCube mirrors each coordinate at 0 and 1 until it lies between.
func intoCube(x []float64) []float64 {
	in := make([]float64, len(x))
	for i, v := range x {
		v = math.Mod(math.Abs(v), 2)
		in[i] = min(v, 2-v)
	}
	return in
}
