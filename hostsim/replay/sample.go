package replay

import "time"

// maxSamples bounds a run's samples. firstDistance lies between them at first; whenever there are too many, every other
// one is forgotten and the distance doubles.
const (
	maxSamples    = 256
	firstDistance = 100 * time.Millisecond
)

// samples are taken at whole multiples of distance, from the first multiple on.
type samples struct {
	distance, nextSample time.Duration
	taken                []Sample
	// asked and found are the prompt tokens of the turns that were admitted before sample i and after the one before it,
	// and those of them that were cached.
	asked, found []int64
}

// admitted adds a turn to the window in which it was admitted.
func (m *samples) admitted(at time.Duration, prompt, cached int) {
	i := 0
	if m.distance > 0 {
		i = int(at / m.distance)
	}
	for len(m.asked) <= i {
		m.asked, m.found = append(m.asked, 0), append(m.found, 0)
	}
	m.asked[i] += int64(prompt)
	m.found[i] += int64(cached)
}

// thin halves the samples.
func (m *samples) thin() {
	for i := range len(m.taken) / 2 {
		m.taken[i] = m.taken[2*i+1]
	}
	m.taken = m.taken[:len(m.taken)/2]
	n := (len(m.asked) + 1) / 2
	for i := range n {
		m.asked[i], m.found[i] = pair(m.asked, i), pair(m.found, i)
	}
	m.asked, m.found = m.asked[:n], m.found[:n]
	m.distance *= 2
}

func pair(v []int64, i int) int64 {
	if 2*i+1 < len(v) {
		return v[2*i] + v[2*i+1]
	}
	return v[2*i]
}

// result is the samples with the hit rates of their windows.
func (m *samples) result() []Sample {
	for i := range m.taken {
		m.taken[i].HitRate = -1
		if i < len(m.asked) && m.asked[i] > 0 {
			m.taken[i].HitRate = ratio(float64(m.found[i]), float64(m.asked[i]))
			m.taken[i].PromptTokens, m.taken[i].CachedTokens = m.asked[i], m.found[i]
		}
	}
	return m.taken
}

// sample takes the samples that are due before something happens at before.
func (r *run) sample(before time.Duration) {
	m := &r.measures.samples
	for m.nextSample <= before {
		if m.distance == 0 {
			m.distance, m.nextSample = firstDistance, firstDistance
			continue
		}
		if len(m.taken) == maxSamples {
			m.thin()
			m.nextSample = time.Duration(len(m.taken)+1) * m.distance
			continue
		}
		m.taken = append(m.taken, r.snapshot(m.nextSample))
		m.nextSample += m.distance
	}
}

func (r *run) snapshot(at time.Duration) Sample {
	s := Sample{At: at.Seconds(), Open: r.open, Requests: make([]int, len(r.servers)), KVUse: make([]float64, len(r.servers))}
	for i, to := range r.servers {
		st := to.engine.Stats()
		s.Requests[i] = st.Running + st.Waiting
		s.KVUse[i] = ratio(float64(st.Held), float64(r.Engine.Blocks))
	}
	return s
}
