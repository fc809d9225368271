package trace

// IdealCache is one prefix cache without bound, asked by turns that come one after another. It holds a set of block ids. The
// zero value is empty. Not safe for concurrent use.
type IdealCache struct{ ids blockSet }

// Add plays a session's turns and returns how many of their prompts' tokens it finds, in whole blocks of blockTokens, 1 or
// more. As in an engine, a prompt's last token is computed in any case, and the last generated one never is: a turn leaves
// its prompt, and where the session replays its own output what was generated, less one token. O(runs, and ids/64).
func (c *IdealCache) Add(s Session, blockTokens int) (found int) {
	own := 0 // tokens of the prompt that the turn before leaves, if only to this session
	for i, t := range s.Turns {
		known, left := min(own, BlockCount(t.Blocks)*s.BlockTokens), 0
		blocks := t.Blocks
		if s.Replays && i+1 < len(s.Turns) && s.Turns[i+1].Input >= t.Input+t.Output {
			blocks = s.Turns[i+1].Blocks // they tell the prompt's end, too, where it is no full block
			left = t.Input + max(0, t.Output-1)
		}
		known = max(known, c.ids.prefix(blocks)*s.BlockTokens)
		found += min(known, t.Input-1) / blockTokens * blockTokens
		c.ids.add(t.Blocks, BlockCount(t.Blocks))
		own = left
	}
	return found
}

func (c *IdealCache) clear() { c.ids.clear() }
