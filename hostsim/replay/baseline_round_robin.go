package replay

// roundRobin gives each request to the next replica.
type roundRobin struct{ next int }

func (r *roundRobin) choose(_ *Turn, members []int) int {
	i := members[r.next%len(members)]
	r.next++
	return i
}

func (*roundRobin) done(int) {}
