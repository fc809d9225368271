package replica

import "math"

// none is no block.
const none = int32(-1)

// maxBlocks bounds a pool.
const maxBlocks = math.MaxInt32

// blockPool is the KV memory of one model server in blocks, and its prefix cache: a block that is full has content, keeps
// it when nobody holds it any more, and loses it when it is taken for something else.
//
// Free blocks are taken in this order: blocks without content, last freed first; blocks never used; blocks with content,
// least recently freed first, of one request the last one first (vllm/v1/core/block_pool.py, release 0.32: free_blocks
// puts blocks without a hash in front of the free list, which begins as all blocks in order, and those with one at its
// end).
//
// Invariants:
//  1. free blocks and blocks that a request holds are the pool's size.
//  2. Only blocks with content are found, and a block is found by the key under which it was inserted.
//  3. Of blocks with equal content the one inserted first is found.
type blockPool struct {
	size int
	// blocks are those that were used at least once; the rest of size has no memory yet.
	blocks []block
	// free is the number of blocks that nobody holds, cached the number of those with content.
	free, cached int
	// empty is the top of the stack of free blocks without content, linked by next.
	empty int32
	// oldest and newest are the ends of the list of free blocks with content; after reset their content is gone, their
	// place is not.
	oldest, newest int32
	// buckets are the heads of chains of blocks with content, a power of two of them; shift makes an index of a hash.
	buckets []int32
	shift   uint
	watched watch
}

// block is 24 bytes; pools have hundreds of thousands of them.
type block struct {
	key uint64
	// prev and next link free blocks.
	prev, next int32
	// chain links the blocks of a bucket.
	chain int32
	// state is the number of holders times oneHolder, and flags.
	state uint32
}

const (
	hasContent = 1 << iota
	isPrivate
	isWatched
	oneHolder
)

// watch notices what could change the chain that was found for a request: the loss of one of its blocks, a new block that
// goes on where it ends, a request that frees what it holds.
type watch struct {
	changed bool
	open    bool // the chain goes on with the block key
	key     uint64
	private bool
}

func newBlockPool(size int) blockPool {
	return blockPool{size: size, free: size, empty: none, oldest: none, newest: none}
}

// take gives the next free block to one holder. There must be one.
func (p *blockPool) take() int32 {
	p.free--
	var i int32
	switch {
	case p.empty != none:
		i = p.empty
		p.empty = p.blocks[i].next
	case len(p.blocks) < p.size:
		i = int32(len(p.blocks))
		p.blocks = append(p.blocks, block{chain: none})
	default:
		i = p.oldest
		p.unlink(i)
		if p.blocks[i].state&hasContent != 0 {
			p.remove(i)
		}
	}
	p.blocks[i].state = oneHolder
	return i
}

// touch gives each of blocks one holder more.
func (p *blockPool) touch(blocks []int32) {
	for _, i := range blocks {
		b := &p.blocks[i]
		if b.state < oneHolder {
			p.unlink(i)
			p.free--
		}
		b.state += oneHolder
	}
}

// release takes one holder from each of one request's blocks.
func (p *blockPool) release(blocks []int32) {
	p.watched.changed = true
	emptied := 0
	for k := len(blocks) - 1; k >= 0; k-- {
		i := blocks[k]
		b := &p.blocks[i]
		b.state -= oneHolder
		switch {
		case b.state >= oneHolder:
		case b.state&hasContent != 0:
			p.append(i)
			p.free++
		default:
			emptied++
		}
	}
	for k := 0; emptied > 0; k++ {
		b := &p.blocks[blocks[k]]
		if b.state < oneHolder && b.state&hasContent == 0 {
			b.next, p.empty = p.empty, blocks[k]
			p.free++
			emptied--
		}
	}
}

// held says whether somebody holds block i.
func (p *blockPool) held(i int32) bool { return p.blocks[i].state >= oneHolder }

// append makes i the free block with content that is taken last.
func (p *blockPool) append(i int32) {
	b := &p.blocks[i]
	b.prev, b.next = p.newest, none
	if p.newest == none {
		p.oldest = i
	} else {
		p.blocks[p.newest].next = i
	}
	p.newest = i
}

// unlink takes i out of the list of free blocks with content.
func (p *blockPool) unlink(i int32) {
	b := &p.blocks[i]
	if b.prev == none {
		p.oldest = b.next
	} else {
		p.blocks[b.prev].next = b.next
	}
	if b.next == none {
		p.newest = b.prev
	} else {
		p.blocks[b.next].prev = b.prev
	}
}

// find returns the block with the key's content, or none.
func (p *blockPool) find(key uint64, private bool) int32 {
	if len(p.buckets) == 0 {
		return none
	}
	i := p.buckets[p.bucket(key, private)]
	for i != none {
		b := &p.blocks[i]
		if b.key == key && b.state&isPrivate != 0 == private {
			break
		}
		i = b.chain
	}
	return i
}

// insert says that block i, which is held and had no content, now has the key's.
func (p *blockPool) insert(i int32, key uint64, private bool) {
	if p.watched.open && p.watched.key == key && p.watched.private == private {
		p.watched.changed = true
	}
	if p.cached >= len(p.buckets) {
		p.grow()
	}
	p.cached++
	b := &p.blocks[i]
	b.key, b.chain = key, none
	b.state |= hasContent
	if private {
		b.state |= isPrivate
	}
	p.link(p.bucket(key, private), i)
}

// link puts block i at the end of a bucket's chain.
func (p *blockPool) link(bucket uint64, i int32) {
	at := &p.buckets[bucket]
	for *at != none {
		at = &p.blocks[*at].chain
	}
	*at = i
}

// remove takes block i's content away.
func (p *blockPool) remove(i int32) {
	b := &p.blocks[i]
	at := &p.buckets[p.bucket(b.key, b.state&isPrivate != 0)]
	for *at != i {
		at = &p.blocks[*at].chain
	}
	*at = b.chain
	if b.state&isWatched != 0 {
		p.watched.changed = true
	}
	b.state &^= hasContent | isPrivate | isWatched
	p.cached--
}

// reset takes all content away.
func (p *blockPool) reset() {
	for i := range p.blocks {
		p.blocks[i].state &^= hasContent | isPrivate | isWatched
	}
	for i := range p.buckets {
		p.buckets[i] = none
	}
	p.cached = 0
	p.watched.changed = true
}

// watch begins to notice changes of the chain that was found for a request.
func (p *blockPool) watch(chain []int32) {
	for _, i := range chain {
		p.blocks[i].state |= isWatched
	}
	p.watched = watch{}
}

// watchKey notices when the content appears that a chain ends for want of.
func (p *blockPool) watchKey(key uint64, private bool) {
	p.watched.open, p.watched.key, p.watched.private = true, key, private
}

// unwatch ends what watch and watchKey began.
func (p *blockPool) unwatch(chain []int32) {
	for _, i := range chain {
		p.blocks[i].state &^= isWatched
	}
	p.watched = watch{}
}

// bucket returns the index of the bucket for a key.
func (p *blockPool) bucket(key uint64, private bool) uint64 {
	if private {
		key = ^key
	}
	return key * 0x9e3779b97f4a7c15 >> p.shift // the golden ratio: neighbours go apart
}

// grow doubles the buckets. A bucket's blocks go to two buckets, in their order, so that invariant 3 holds.
func (p *blockPool) grow() {
	old := p.buckets
	p.buckets = make([]int32, max(16, 2*len(old)))
	for i := range p.buckets {
		p.buckets[i] = none
	}
	p.shift = 64
	for n := len(p.buckets); n > 1; n /= 2 {
		p.shift--
	}
	for _, i := range old {
		for i != none {
			b := &p.blocks[i]
			next := b.chain
			b.chain = none
			p.link(p.bucket(b.key, b.state&isPrivate != 0), i)
			i = next
		}
	}
}
