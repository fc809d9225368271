package replay

// perProcessCounter is how NeMo Gym's model server assigned sessions to engines before NVIDIA-NeMo/Gym#2369
// (responses_api_models/vllm_model/app.py before commit c84b7ed4b, Apache-2.0): each of its worker processes numbers the
// sessions that it has seen, for ever, and sends session i to engine i mod n. Any process handles any turn, so a session
// has up to as many engines as there are processes.
type perProcessCounter struct {
	// numbers has a map for each process, from session to its number there.
	numbers []map[string]int
}

func (p *perProcessCounter) choose(t *Turn, members []int) int {
	for len(p.numbers) <= t.Client {
		p.numbers = append(p.numbers, map[string]int{})
	}
	seen := p.numbers[t.Client]
	n, ok := seen[t.Session]
	if !ok {
		n = len(seen)
		seen[t.Session] = n
	}
	return members[n%len(members)]
}

func (*perProcessCounter) done(int) {}
