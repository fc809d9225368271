package replica

import (
	"slices"
	"testing"
)

// Free blocks go in this order: without content, the last freed first and of one request the last block first; never used;
// with content, the oldest first and of one request the last block first.
func TestBlocksAreTakenInOrder(t *testing.T) {
	p := newBlockPool(7)
	var a, b []int32
	for range 3 {
		a = append(a, p.take())
	}
	for range 2 {
		b = append(b, p.take())
	}
	p.insert(a[0], 1, false)
	p.insert(a[1], 2, false) // a's last block is not full
	p.release(a)
	p.release(b) // nothing of b is full
	var got []int32
	for p.free > 0 {
		got = append(got, p.take())
	}
	if want := []int32{b[1], b[0], a[2], 5, 6, a[1], a[0]}; !slices.Equal(got, want) {
		t.Errorf("taken %v, want %v", got, want)
	}
	if p.cached != 0 || p.find(1, false) != none || p.find(2, false) != none {
		t.Errorf("what was taken is still found: %d", p.cached)
	}
}

// A private key is another content than a caller's equal number, even where both are in one bucket.
func TestPrivateKeysAreTheirOwn(t *testing.T) {
	p := newBlockPool(2)
	p.grow()
	key := uint64(1)
	for p.bucket(key, true) != p.bucket(key, false) {
		key++
	}
	b := p.take()
	p.insert(b, key, true)
	if p.find(key, false) != none || p.find(key, true) != b {
		t.Errorf("found %d and %d, want none and %d", p.find(key, false), p.find(key, true), b)
	}
}

// Of blocks with equal content the one inserted first is found, however the table grows, and the next one when that is
// gone.
func TestFirstOfEqualBlocksIsFound(t *testing.T) {
	p := newBlockPool(1000)
	var equal []int32
	for i := range 1000 {
		b := p.take()
		if i%100 == 0 {
			p.insert(b, 7, false)
			equal = append(equal, b)
		} else {
			p.insert(b, uint64(1000+i), false)
		}
	}
	for _, b := range equal {
		if got := p.find(7, false); got != b {
			t.Fatalf("found %d, want %d", got, b)
		}
		p.remove(b)
	}
	if p.find(7, false) != none {
		t.Error("found after all are gone")
	}
}
