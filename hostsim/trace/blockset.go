package trace

import "math/bits"

// blockSet is a set of block ids. Ids that lie close together, as those of a conversation do, share an entry: 64 of them
// take as much memory as one.
type blockSet struct {
	pages map[uint64]uint64 // bits of the ids from 64*key on
	size  int
}

// prefix returns how many ids of runs, from the first on, are in the set.
func (s *blockSet) prefix(runs []Run) int {
	n := 0
	for _, r := range runs {
		for first, left := r.First, uint64(r.Count); left > 0; {
			mask, count := pageMask(first, left)
			if missing := mask &^ s.pages[first/64]; missing != 0 {
				return n + bits.TrailingZeros64(missing) - int(first%64)
			}
			n += int(count)
			first, left = first+count, left-count
		}
	}
	return n
}

// add puts the first n ids of runs into the set.
func (s *blockSet) add(runs []Run, n int) {
	if s.pages == nil {
		s.pages = map[uint64]uint64{}
	}
	for _, r := range runs {
		left := uint64(min(r.Count, n))
		n -= int(left)
		for first := r.First; left > 0; {
			mask, count := pageMask(first, left)
			page := s.pages[first/64]
			if added := mask &^ page; added != 0 {
				s.size += bits.OnesCount64(added)
				s.pages[first/64] = page | mask
			}
			first, left = first+count, left-count
		}
	}
}

// without returns how many ids are in s and not in other. It looks at all of s.
func (s *blockSet) without(other *blockSet) int {
	n := 0
	for page, ids := range s.pages {
		n += bits.OnesCount64(ids &^ other.pages[page])
	}
	return n
}

func (s *blockSet) clear() {
	clear(s.pages)
	s.size = 0
}

// pageMask returns the bits of the ids from first on that lie in its page, and how many of count they are.
func pageMask(first, count uint64) (mask, inPage uint64) {
	at := first % 64
	inPage = min(count, 64-at)
	return ^uint64(0) >> (64 - inPage) << at, inPage
}
