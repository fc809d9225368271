package policy_test

import (
	"math"
	"math/big"
	"slices"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// rules are what a pool is told to do.
type rules struct {
	policy   string
	options  policy.Options
	health   policy.HealthRule
	timeout  int64
	capacity int
	grace    int64
}

func (o *oracle) pinning() bool {
	switch o.policy {
	case "sticky_least_loaded", "cache_aware":
		return true
	case "consistent_hash":
		return o.options.LoadFactor > 0
	}
	return false
}

// place chooses for a new session under a policy that pins.
func (o *oracle) place(session, prompt string, leaving uint32, now int64) *oracleReplica {
	all := o.eligible(now)
	switch o.policy {
	case "consistent_hash":
		return o.hash(all, session, leaving)
	case "cache_aware":
		if c := o.cached(all, session, prompt, leaving); c != nil {
			return c
		}
	}
	// Whose cool-down is over, the one that waits longest.
	if due := where(all, func(c *oracleReplica) bool { return c.length > 0 && c.fit(now) }); len(due) > 0 {
		return best(due, func(a, b *oracleReplica) bool { return a.ready() < b.ready() })
	}
	fair := where(all, func(c *oracleReplica) bool { return o.fair(c, all) })
	if len(fair) == 0 {
		fair = all
	}
	return best(fair, func(a, b *oracleReplica) bool { return o.better(a, b, session, leaving) })
}

// fair reports whether c, if it joins, may have one more placement: not more
// than two in every total/weight.
func (o *oracle) fair(c *oracleReplica, among []*oracleReplica) bool {
	total := int64(0)
	for _, e := range among {
		total += int64(e.member.Weight)
	}
	ago := o.ago(c.id)
	return !c.joining || ago == 0 || 2*ago*int64(c.member.Weight) >= total
}

// hash walks the session's order to the first replica with room.
func (o *oracle) hash(all []*oracleReplica, session string, leaving uint32) *oracleReplica {
	order := slices.Clone(all)
	slices.SortFunc(order, func(a, b *oracleReplica) int {
		if a.member.Weight != b.member.Weight {
			if x, y := stretched(a, session), stretched(b, session); x != y {
				return map[bool]int{true: -1, false: 1}[x > y]
			}
		}
		return map[bool]int{true: -1, false: 1}[higher(a, b, session)]
	})
	open, weight := int64(1), int64(0)
	for _, c := range all {
		open += o.load(c, leaving)
		weight += int64(c.member.Weight)
	}
	for _, c := range order {
		share := o.options.LoadFactor * float64(open) * float64(c.member.Weight) / float64(weight)
		if o.options.LoadFactor == 0 || float64(o.load(c, leaving)+1) <= math.Ceil(share) {
			return c
		}
	}
	if len(order) == 0 {
		return nil
	}
	return order[0]
}

// stretched is the weighted rendezvous score.
func stretched(c *oracleReplica, session string) float64 {
	u := (math.Floor(float64(mixed(key(session).Rank, c.rank)>>11)) + 0.5) / math.Exp2(53)
	return float64(c.member.Weight) / -math.Log(u)
}

// oracleHolders are the replicas that were given a prefix, latest first.
type oracleHolders struct {
	ids  []uint32
	many bool
}

// oracleLengths are the lengths of the prefixes that an index knows, as far as
// the prompts here are long.
var oracleLengths = []int{256, 320, 384, 448, 512, 640, 768, 960, 1152, 1408, 1728, 2112}

// cached is the holder of the longest known prefix, nil without preference.
func (o *oracle) cached(all []*oracleReplica, session, prompt string, leaving uint32) *oracleReplica {
	for i := len(oracleLengths) - 1; i >= 0; i-- {
		n := oracleLengths[i]
		if n > len(prompt) {
			continue
		}
		known := o.prompts[prompt[:n]]
		holders := where(all, func(c *oracleReplica) bool { return slices.Contains(known.ids, c.id) })
		if !known.many && len(holders) == 0 {
			continue
		}
		most := len(holders) > 1 && len(holders) > len(all)-len(holders)
		if known.many || most || float64(n)/float64(len(prompt)) <= o.options.Threshold {
			return nil
		}
		order := func(a, b *oracleReplica) bool { return o.better(a, b, session, leaving) }
		holder, least := best(holders, order), best(all, order)
		x := big.NewRat(o.load(holder, leaving), int64(holder.member.Weight))
		y := big.NewRat(o.load(least, leaving), int64(least.member.Weight))
		margin := new(big.Rat).Add(y, big.NewRat(int64(o.options.BalanceAbs), 1))
		factor := new(big.Rat).Mul(y, new(big.Rat).SetFloat64(o.options.BalanceRel))
		if x.Cmp(margin) > 0 && x.Cmp(factor) > 0 {
			return nil
		}
		return holder
	}
	return nil
}

// learn records that the replica was given the prompt.
func (o *oracle) learn(prompt string, id uint32) {
	for _, n := range oracleLengths {
		if n > len(prompt) {
			continue
		}
		known := o.prompts[prompt[:n]]
		next := oracleHolders{ids: []uint32{id}, many: known.many}
		for _, h := range known.ids {
			if h != id && o.byID(h) != nil {
				next.ids = append(next.ids, h)
			}
		}
		if len(next.ids) == 1 {
			next.many = false
		}
		if len(next.ids) > 4 {
			next.ids, next.many = next.ids[:4], true
		}
		o.prompts[prompt[:n]] = next
	}
}

// pick chooses for a request that gets no pin, or under a policy that pins none.
func (o *oracle) pick(all []*oracleReplica, session string, before []uint32) *oracleReplica {
	n := uint64(len(all))
	switch o.policy {
	case "consistent_hash":
		if session != "" {
			return o.hash(all, session, 0)
		}
	case "round_robin":
		return next(all, before)
	case "random":
		return all[o.random%n]
	case "power_of_two":
		if n == 1 {
			return all[0]
		}
		first := (o.random / (1 << 32)) % n
		// Which of the others, counted from the first one's successor on.
		second := (first + 1 + o.random%(1<<32)%(n-1)) % n
		if o.busier(all[first], all[second]) > 0 {
			return all[second]
		}
		return all[first]
	case "least_loaded":
		return next(where(all, func(c *oracleReplica) bool {
			return !slices.ContainsFunc(all, func(e *oracleReplica) bool { return o.busier(c, e) > 0 })
		}), before)
	}
	return next(where(all, func(c *oracleReplica) bool {
		return !slices.ContainsFunc(all, func(e *oracleReplica) bool {
			return compare(o.load(c, 0), c.member.Weight, o.load(e, 0), e.member.Weight) > 0
		})
	}), before)
}

// busier is above zero if a has more running requests per weight than b.
func (o *oracle) busier(a, b *oracleReplica) int64 {
	runs := func(id uint32) (n int64) {
		for _, r := range o.running {
			if r == id {
				n++
			}
		}
		return n
	}
	return compare(runs(a.id), a.member.Weight, runs(b.id), b.member.Weight)
}

// next is the one chosen longest ago, or the first that never was.
func next(list []*oracleReplica, before []uint32) *oracleReplica {
	return best(list, func(a, b *oracleReplica) bool {
		x, y := ago(before, a.id), ago(before, b.id)
		return y != 0 && (x == 0 || x > y)
	})
}
