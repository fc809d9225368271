package hostsim

import "math/rand/v2"

// Scenario is what several workers do at the same time. Each function uses only its own worker and that one's streams, and
// none calls Advance, Reconfigure, Update, Drain or Restore of the host; Worker.RunDue is the way to have a tick or an
// answer to a call-out among the functions. Config.CallTimeout runs on while a worker waits for its turn.
type Scenario struct {
	// Workers has the function of worker i at i; nil takes no part. There are at most Host.Workers.
	Workers []func(*Worker)
	// Main runs in the main thread's virtual machine; nil takes no part.
	Main func(*Worker)
	// EveryCall has workers change over at every host call. Without it they do so at calls that touch what they share:
	// shared data, queues, metrics and requests to upstreams, see Access. Between two such calls a worker can notice
	// nothing of the others.
	EveryCall bool
}

// Played is what came of a scenario.
type Played struct {
	// Choices has, step by step, the index of the worker that went on. Play repeats the run from it.
	Choices []int
	// Accesses has the host call of each step.
	Accesses []Access
}

// Play runs a scenario's functions, each on its own goroutine, but lets only one of them run at a time: first each, main
// thread and worker 0 first, up to its first host call; then, step by step, one makes the call before which it waits and
// runs up to the next. Who does is the next of choices or, when these are used up or name a worker that is done, drawn
// from seed. The same module, state, seed and choices give the same run. Play panics when there are more functions than
// workers, and with what a function panicked with.
func (h *Host) Play(sc Scenario, seed uint64, choices ...int) Played {
	h.advancing.Lock()
	defer h.advancing.Unlock()
	s := h.newSchedule(&sc)
	rng := rand.New(rand.NewPCG(seed, uint64(len(s.players))))
	h.play(s, func(ready []*player) *player {
		if len(choices) > 0 {
			next := choices[0]
			choices = choices[1:]
			for _, p := range ready {
				if p.worker.index == next {
					return p
				}
			}
		}
		return ready[rng.IntN(len(ready))]
	})
	return s.played()
}

// Interleave is Play of functions for workers 0, 1 and so on, in an order drawn from seed. It returns the steps.
func (h *Host) Interleave(seed uint64, fns ...func(*Worker)) []Access {
	return h.Play(Scenario{Workers: fns}, seed).Accesses
}
