package hostsim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// walk is a worker of a small machine without any plugin: steps on keys, each of which reads, adds to or writes one.
type walk []Access

// run plays programs as the explorer says, on integers, and returns the end: the keys, and what each worker has read.
func (e *explorer) run(t *testing.T, programs []walk) (end string, trace []Access) {
	e.begin()
	var players []*player
	for w := range programs {
		players = append(players, &player{worker: &Worker{index: w}})
	}
	at, read, keys := make([]int, len(programs)), make([]string, len(programs)), map[string]int{}
	for {
		var ready []*player
		for w, p := range players {
			if at[w] < len(programs[w]) {
				p.next = programs[w][at[w]]
				ready = append(ready, p)
			}
		}
		if len(ready) == 0 {
			return fmt.Sprint(keys, read), trace
		}
		p, err := e.choose(ready)
		ok(t, err)
		w := p.worker.index
		switch p.next.Kind {
		case AccessRead:
			read[w] += fmt.Sprint(" ", keys[p.next.On])
		case AccessAdd:
			keys[p.next.On]++
		case AccessWrite: // depends on what was there
			read[w] += fmt.Sprint(" ", keys[p.next.On])
			keys[p.next.On] = keys[p.next.On]*3 + w + 1
		}
		trace = append(trace, p.next)
		at[w]++
	}
}

// class is the same for all traces that exchanges of neighbours without a conflict lead to: the steps in layers, each as
// early as its conflicts let it be.
func class(trace []Access) string {
	layers := map[int][]string{}
	depth := make([]int, len(trace))
	for i, a := range trace {
		for j, b := range trace[:i] {
			if a.Worker == b.Worker || a.Conflicts(b) {
				depth[i] = max(depth[i], depth[j]+1)
			}
		}
		layers[depth[i]] = append(layers[depth[i]], fmt.Sprint(a.Worker))
	}
	var b strings.Builder
	for i := range len(layers) {
		slices.Sort(layers[i])
		fmt.Fprintln(&b, layers[i])
	}
	return b.String()
}

// all runs everything there is to run, and returns the ends, the classes, and the number of schedules that were run.
func (e *explorer) all(t *testing.T, programs []walk) (ends, classes map[string]bool, runs int) {
	ends, classes = map[string]bool{}, map[string]bool{}
	for more := true; more; more = e.next() {
		end, trace := e.run(t, programs)
		if !e.asleep {
			ends[end], classes[class(trace)], runs = true, true, runs+1
		}
	}
	return ends, classes, runs
}

// Of random programs the explorer runs every class of interleavings, each once: pruned to the last one, and nothing lost.
func TestExplorerRunsEachClassOnce(t *testing.T) {
	kinds := []AccessKind{AccessOwn, AccessRead, AccessRead, AccessAdd, AccessWrite, AccessWrite}
	all, least := 0, 0
	for seed := range uint64(600) {
		rng := rand.New(rand.NewPCG(seed, 1))
		programs := make([]walk, 2+rng.IntN(2))
		for w := range programs {
			for range 1 + rng.IntN(6/len(programs)+1) {
				programs[w] = append(programs[w], Access{Worker: w, On: string(rune('a' + rng.IntN(3))), Kind: kinds[rng.IntN(len(kinds))]})
			}
		}
		wantEnds, wantClasses, brute := (&explorer{unpruned: true}).all(t, programs)
		ends, classes, runs := (&explorer{}).all(t, programs)
		if len(ends) != len(wantEnds) || len(classes) != len(wantClasses) || runs != len(wantClasses) {
			t.Fatalf("seed %d: %d runs, %d classes, %d ends; there are %d classes and %d ends in %d interleavings of\n%v",
				seed, runs, len(classes), len(ends), len(wantClasses), len(wantEnds), brute, programs)
		}
		all, least = all+brute, least+runs
	}
	t.Logf("%d interleavings in %d classes", all, least)
}

// Without pruning there are as many as the binomials say.
func TestExplorerUnprunedRunsAll(t *testing.T) {
	step := Access{Kind: AccessOwn}
	for _, c := range []struct {
		steps []int
		want  int
	}{{[]int{1}, 1}, {[]int{3, 3}, 20}, {[]int{5, 4}, 126}, {[]int{2, 2, 2}, 90}} {
		var programs []walk
		for _, n := range c.steps {
			programs = append(programs, slices.Repeat(walk{step}, n))
		}
		if _, _, n := (&explorer{unpruned: true}).all(t, programs); n != c.want {
			t.Errorf("%v steps: %d interleavings, want %d", c.steps, n, c.want)
		}
	}
}

// Functions that depend on more than their worker are found out.
func TestExplorerNoticesWhatCannotBeRepeated(t *testing.T) {
	e := &explorer{}
	write := func(key string) []walk {
		return []walk{{{Worker: 0, On: key, Kind: AccessWrite}}, {{Worker: 1, On: key, Kind: AccessWrite}}}
	}
	e.run(t, write("a"))
	e.next()
	e.begin()
	ready := []*player{{worker: &Worker{index: 0}, next: write("b")[0][0]}, {worker: &Worker{index: 1}, next: write("b")[1][0]}}
	if _, err := e.choose(ready); err == nil || !strings.Contains(err.Error(), "at step 0") {
		t.Errorf("err %v", err)
	}
}
