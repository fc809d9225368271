package replica

// PrefixCache is the KV cache of one model server as far as routing can see it: a bounded set of prompt blocks, least
// recently used out first.
//
// Invariants:
//  1. Len never exceeds the capacity.
//  2. Of one prompt's blocks, a later one is never kept longer than an earlier one that was not used since: eviction
//     takes the tail of a prompt first, as vLLM does by freeing a request's blocks in reverse order. A cached block
//     behind an evicted one would be memory that no prompt can hit.
//
// Blocks of generated tokens are not kept: traces do not name them. Not safe for concurrent use.
type PrefixCache struct {
	capacity int
	blocks   map[uint64]*cachedBlock
	// The ring's next is the most recently used block, its previous the least recently used one.
	ring cachedBlock
	free *cachedBlock
}

type cachedBlock struct {
	id         uint64
	prev, next *cachedBlock
}

// NewPrefixCache returns an empty cache for capacity blocks. Zero or less means without bound.
func NewPrefixCache(capacity int) *PrefixCache {
	c := &PrefixCache{capacity: capacity, blocks: map[uint64]*cachedBlock{}}
	c.ring.prev, c.ring.next = &c.ring, &c.ring
	return c
}

// Len returns the number of blocks in the cache.
func (c *PrefixCache) Len() int { return len(c.blocks) }

// Match returns how many of a prompt's blocks, counted from the first, are cached. It changes nothing. O(result).
func (c *PrefixCache) Match(prompt []uint64) int {
	for i, id := range prompt {
		if c.blocks[id] == nil {
			return i
		}
	}
	return len(prompt)
}

// Admit returns what Match does, and then holds the prompt's blocks as the most recently used ones. Of a prompt larger
// than the capacity it holds the beginning. O(len(prompt)).
func (c *PrefixCache) Admit(prompt []uint64) int {
	hits := c.Match(prompt)
	if c.capacity > 0 && len(prompt) > c.capacity {
		prompt = prompt[:c.capacity]
	}
	for i := len(prompt) - 1; i >= 0; i-- {
		c.use(prompt[i])
	}
	for c.capacity > 0 && len(c.blocks) > c.capacity {
		c.evict()
	}
	return hits
}

// use makes id the most recently used block, cached before or not.
func (c *PrefixCache) use(id uint64) {
	b := c.blocks[id]
	switch {
	case b != nil:
		b.prev.next, b.next.prev = b.next, b.prev
	case c.free != nil:
		b, c.free = c.free, c.free.next
		b.id, c.blocks[id] = id, b
	default:
		b = &cachedBlock{id: id}
		c.blocks[id] = b
	}
	b.prev, b.next = &c.ring, c.ring.next
	b.prev.next, b.next.prev = b, b
}

func (c *PrefixCache) evict() {
	b := c.ring.prev
	b.prev.next, c.ring.prev = &c.ring, b.prev
	delete(c.blocks, b.id)
	b.next, c.free = c.free, b
}
