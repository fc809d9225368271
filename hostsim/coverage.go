package hostsim

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// Coverage says what of a module has been exercised since its host started, over all virtual machines, those that are gone
// included: each callback that it exports and each host function that it imports, also those never called.
type Coverage struct {
	// Callbacks has the exports that a host would call, by name.
	Callbacks []CallbackCoverage `json:"callbacks"`
	// HostCalls has the imports, by name.
	HostCalls []HostCallCoverage `json:"host_calls"`
}

// CallbackCoverage is one callback.
type CallbackCoverage struct {
	Name string `json:"name"`
	// Calls is how often the host called it. 0 means never.
	Calls uint64 `json:"calls"`
}

// HostCallCoverage is one host function.
type HostCallCoverage struct {
	// Name is module.name, such as env.proxy_log.
	Name string `json:"name"`
	// Calls is how often the module called it. 0 means never.
	Calls uint64 `json:"calls"`
	// Answers says how often it was answered by which status, most frequent first. A WASI function's errno stands as a
	// number; a call that trapped was not answered.
	Answers []AnswerCoverage `json:"answers,omitempty"`
}

// AnswerCoverage counts one status.
type AnswerCoverage struct {
	// Status is a name such as OK or CAS_MISMATCH, for WASI "errno 0" and so on, and "other" for all beyond those counted.
	Status string `json:"status"`
	Calls  uint64 `json:"calls"`
}

// answersCounted is the number of statuses that are counted each for itself, which takes in all of them and the errnos that
// a gateway answers. The last one counts all above.
const answersCounted = 64

// answerCounts are one virtual machine's answers of one binding.
type answerCounts [answersCounted]uint64

func (a answerCounts) plus(b answerCounts) answerCounts {
	for i := range a {
		a[i] += b[i]
	}
	return a
}

// Coverage returns what has been called so far and how it was answered. It costs a pass over all virtual machines.
func (h *Host) Coverage() Coverage {
	counters := h.Counters()
	c := Coverage{Callbacks: []CallbackCoverage{}, HostCalls: []HostCallCoverage{}}
	for _, e := range exportsOf(h.program.Load().compiled) {
		if e.Callback {
			c.Callbacks = append(c.Callbacks, CallbackCoverage{e.Name, counters.Callbacks[e.Name]})
		}
	}
	for _, b := range h.program.Load().bindings {
		if slices.ContainsFunc(c.HostCalls, func(x HostCallCoverage) bool { return x.Name == b.label }) {
			continue // official Go's linker lists some imports twice
		}
		c.HostCalls = append(c.HostCalls, HostCallCoverage{b.label, counters.HostCalls[b.label], b.answers(counters.answers[b.label])})
	}
	slices.SortFunc(c.HostCalls, func(a, b HostCallCoverage) int { return strings.Compare(a.Name, b.Name) })
	return c
}

func (b *binding) answers(counts answerCounts) []AnswerCoverage {
	var out []AnswerCoverage
	for st, n := range counts {
		if n > 0 {
			out = append(out, AnswerCoverage{b.answerName(st), n})
		}
	}
	slices.SortStableFunc(out, func(a, b AnswerCoverage) int { return cmp.Compare(b.Calls, a.Calls) })
	return out
}

func (b *binding) answerName(st int) string {
	switch {
	case st == answersCounted-1:
		return "other"
	case b.answersStatus():
		return Status(st).String()
	}
	return "errno " + strconv.Itoa(st)
}

// Merge adds another host's coverage of the same module, as of several cases of one suite. Names that only one of them has
// are kept.
func (c *Coverage) Merge(other Coverage) {
	for _, o := range other.Callbacks {
		i, found := slices.BinarySearchFunc(c.Callbacks, o.Name, func(a CallbackCoverage, name string) int { return strings.Compare(a.Name, name) })
		if !found {
			c.Callbacks = slices.Insert(c.Callbacks, i, CallbackCoverage{Name: o.Name})
		}
		c.Callbacks[i].Calls += o.Calls
	}
	for _, o := range other.HostCalls {
		i, found := slices.BinarySearchFunc(c.HostCalls, o.Name, func(a HostCallCoverage, name string) int { return strings.Compare(a.Name, name) })
		if !found {
			c.HostCalls = slices.Insert(c.HostCalls, i, HostCallCoverage{Name: o.Name})
		}
		c.HostCalls[i].add(o)
	}
}

func (h *HostCallCoverage) add(o HostCallCoverage) {
	h.Calls += o.Calls
	for _, a := range o.Answers {
		i := slices.IndexFunc(h.Answers, func(x AnswerCoverage) bool { return x.Status == a.Status })
		if i < 0 {
			i, h.Answers = len(h.Answers), append(slices.Clip(h.Answers), AnswerCoverage{Status: a.Status})
		} else {
			h.Answers = slices.Clone(h.Answers) // it may be another coverage's
		}
		h.Answers[i].Calls += a.Calls
	}
	slices.SortStableFunc(h.Answers, func(a, b AnswerCoverage) int { return cmp.Compare(b.Calls, a.Calls) })
}
