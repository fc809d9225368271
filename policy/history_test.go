package policy_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// step is one thing that happens to a pool; a history is data, so that a failing
// one can be shortened.
type step struct {
	op      string // turn keyless finish follow advance sweep forget apply fail ok begin end drain undrain reset
	name    string // of the session or the replica
	to      string // the replica that is followed to
	blocks  int    // of the prompt: three digits, one for each of its parts
	ms      int64  // how far to advance; for fail and ok how long ago the turn began
	members []policy.Member
}

func (s step) String() string {
	switch s.op {
	case "advance":
		return fmt.Sprintf("advance %d", s.ms)
	case "turn":
		return fmt.Sprintf("turn %s with prompt %d", s.name, s.blocks)
	case "follow":
		return fmt.Sprintf("follow %s to %s", s.name, s.to)
	case "fail", "ok":
		return fmt.Sprintf("%s %s, begun %d ago", s.op, s.name, s.ms)
	case "apply":
		var ms []string
		for _, m := range s.members {
			ms = append(ms, fmt.Sprintf("%s:%v*%d", m.Address, m.State, m.Weight))
		}
		return "apply " + strings.Join(ms, " ")
	}
	return strings.TrimSpace(s.op + " " + s.name)
}

// prompt returns the prompt of a number: its digits are its parts, of which the
// first are equal where the numbers are. Some are shorter than any prefix.
func prompt(blocks int) string {
	if blocks == 0 {
		return ""
	}
	var out strings.Builder
	for i, size := range []int{700, 150 * (blocks % 7), 30 * (blocks % 5)} {
		digit := blocks / []int{100, 10, 1}[i] % 10
		out.WriteString(strings.Repeat(fmt.Sprint("block", digit, ";"), size/7))
	}
	return out.String()
}

const (
	propertyTimeout  = 1600
	propertySessions = 24
	propertyCapacity = 16
)

func randomStep(r *rand.Rand, members []policy.Member) step {
	session := fmt.Sprint("s", r.IntN(propertySessions))
	replica := string(rune('a' + r.IntN(7)))
	switch n := r.IntN(100); {
	case n < 45:
		return step{op: "turn", name: session, blocks: r.IntN(300)}
	case n < 48:
		return step{op: "follow", name: session, to: replica}
	case n < 52:
		return step{op: "keyless"}
	case n < 59:
		return step{op: "finish", name: session}
	case n < 69:
		// Around a sixteenth of the timeout, around the timeout, and between.
		around := []int64{1, 9, 50, 99, 100, 101, 700, 1599, 1600}
		return step{op: "advance", ms: around[r.IntN(len(around))]}
	case n < 77:
		return step{op: "fail", name: replica, ms: int64(r.IntN(3) * r.IntN(100))}
	case n < 80:
		return step{op: "ok", name: replica, ms: int64(r.IntN(3) * r.IntN(100))}
	case n < 83:
		return step{op: "begin", name: replica}
	case n < 85:
		return step{op: "end", name: replica}
	case n < 87:
		return step{op: "sweep"}
	case n < 89:
		return step{op: "forget"}
	case n < 90:
		return step{op: "drain", name: replica}
	case n < 92:
		return step{op: "undrain", name: replica}
	}
	if r.IntN(100) == 0 {
		return step{op: "reset"}
	}
	return step{op: "apply", members: changed(r, members)}
}

// changed returns the members after one change: a replica comes, goes, or gets
// another state or weight; the list is shuffled.
func changed(r *rand.Rand, members []policy.Member) []policy.Member {
	ms := slices.Clone(members)
	name := string(rune('a' + r.IntN(7)))
	i := slices.IndexFunc(ms, func(m policy.Member) bool { return m.Address == name })
	switch {
	case i < 0:
		ms = append(ms, policy.Member{Address: name, Weight: 1 + uint32(r.IntN(3))})
	case r.IntN(3) == 0:
		ms = slices.Delete(ms, i, i+1)
	case r.IntN(4) == 0:
		ms[i].Weight = 1 + uint32(r.IntN(3))
	default:
		ms[i].State = policy.State(r.IntN(3))
	}
	r.Shuffle(len(ms), func(i, j int) { ms[i], ms[j] = ms[j], ms[i] })
	return ms
}

func randomHistory(seed uint64, n int) []step {
	r := rand.New(rand.NewPCG(seed, 0))
	var members []policy.Member
	var steps []step
	for range 1 + r.IntN(5) {
		members = changed(r, members)
	}
	steps = append(steps, step{op: "apply", members: members})
	for len(steps) < n {
		s := randomStep(r, members)
		if s.op == "apply" {
			members = s.members
		}
		steps = append(steps, s)
	}
	return steps
}
