package replica

// AppendKeys appends the keys of the engine's full blocks of tokens tokens, whose content ids name in blocks of idTokens
// each. It relies on ids that differ as soon as anything before them differs (trace.Session, invariant 2). A block of the
// engine that ends beyond the last id has no key. A block that ends inside an id's block is as that whole id: where two
// prompts part there, a real server may find up to idTokens-1 tokens more. idTokens and blockTokens are 1 or more.
func AppendKeys(dst []uint64, ids []uint64, idTokens, blockTokens, tokens int) []uint64 {
	tokens = min(tokens, len(ids)*idTokens)
	last, offset := 0, -1 // the id that holds a block's last token, and where in it that is
	for end := blockTokens; end <= tokens; end += blockTokens {
		offset += blockTokens
		last += offset / idTokens
		offset %= idTokens
		// Small blocks share an id and differ in the offset. Multiplying by an odd number keeps ids apart.
		dst = append(dst, ids[last]*0x9e3779b97f4a7c15+uint64(offset))
	}
	return dst
}
