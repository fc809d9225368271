package replica

// requestQueue is a queue that gives back what was preempted at its front: a ring that grows.
type requestQueue struct {
	ring  []*Request
	first int
	n     int
}

func (q *requestQueue) len() int        { return q.n }
func (q *requestQueue) front() *Request { return q.ring[q.first] }

func (q *requestQueue) pushBack(r *Request) {
	q.grow()
	q.ring[(q.first+q.n)&(len(q.ring)-1)] = r
	q.n++
}

func (q *requestQueue) pushFront(r *Request) {
	q.grow()
	q.first = (q.first - 1) & (len(q.ring) - 1)
	q.ring[q.first] = r
	q.n++
}

func (q *requestQueue) popFront() *Request {
	r := q.ring[q.first]
	q.ring[q.first] = nil
	q.first = (q.first + 1) & (len(q.ring) - 1)
	q.n--
	return r
}

// grow makes room for one more. The ring's length is a power of two.
func (q *requestQueue) grow() {
	if q.n < len(q.ring) {
		return
	}
	ring := make([]*Request, max(8, 2*len(q.ring)))
	for i := range q.n {
		ring[i] = q.ring[(q.first+i)&(len(q.ring)-1)]
	}
	q.ring, q.first = ring, 0
}
