package replay

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

// order tells a source's groups as text: samples with spaces, sub-agents with plus signs between.
func order(t *testing.T, s *source) []string {
	t.Helper()
	var all []string
	for {
		g, err := s.next()
		if err != nil {
			return all
		}
		var families []string
		for _, f := range g {
			var ids []string
			for _, one := range f {
				ids = append(ids, one.ID)
			}
			families = append(families, strings.Join(ids, "+"))
		}
		all = append(all, strings.Join(families, " "))
	}
}

func TestGroups(t *testing.T) {
	one := func(id, parent, group string) trace.Session {
		s := talk(id, 1, 1, 16)
		s.Parent, s.Group = parent, group
		return s
	}
	sessions := []trace.Session{one("a", "", ""), one("b", "a", ""), one("c", "b", ""), one("d", "", "g"), one("e", "d", "g"),
		one("f", "", "g"), one("h", "", "i"), one("j", "gone", ""), one("k", "", "")}
	for _, c := range []struct {
		plain bool
		want  []string
	}{
		{false, []string{"a+b+c", "d+e f", "h", "j", "k"}},
		{true, []string{"a", "b", "c", "d e f", "h", "j", "k"}},
	} {
		if got := order(t, newSource(&list{sessions: sessions}, c.plain, nil)); !slices.Equal(got, c.want) {
			t.Errorf("plain %v: %q, want %q", c.plain, got, c.want)
		}
	}
}

// A shuffle loses nobody, and a seed decides about it.
func TestShuffle(t *testing.T) {
	sessions := talks(3*ShuffleWindow, 1, 16)
	shuffled := func(seed uint64) []string {
		return order(t, newSource(&list{sessions: sessions}, false, rand.New(rand.NewPCG(seed, 0))))
	}
	a, again, b := shuffled(1), shuffled(1), shuffled(2)
	if !slices.Equal(a, again) || slices.Equal(a, b) {
		t.Error("order is not the seed's")
	}
	plain := order(t, newSource(&list{sessions: sessions}, false, nil))
	slices.Sort(a)
	slices.Sort(plain)
	if !slices.Equal(a, plain) {
		t.Error("the shuffled sessions are others")
	}
}

// A cap reads no more sessions than it needs.
func TestReadsAsItGoes(t *testing.T) {
	sessions := talks(100, 2, 16)
	reader := &list{sessions: sessions}
	c := campaign(sessions, 2)
	c.Sessions = func() (trace.Reader, error) { return reader, nil }
	c.Concurrency, c.InOrder = 4, true
	ended := 0
	c.Progress = func(turns int) {
		if ended = turns / 2; reader.next > ended+6 {
			t.Fatalf("%d sessions read after about %d have ended", reader.next, ended)
		}
	}
	play(t, c)
}

// A sub-agent follows the turn of its parent that it followed when it was recorded, with the pause after it.
func TestSubAgents(t *testing.T) {
	parent, child := talk("a", 1<<32, 4, 64), talk("b", 2<<32, 2, 64)
	for i := range parent.Turns {
		parent.Turns[i].API = 300 * time.Millisecond
	}
	child.Parent, child.Start = "a", 1700*time.Millisecond // the turn at 1 s ended at 1.3 s
	c := campaign([]trace.Session{parent, child, talk("c", 3<<32, 1, 64)}, 1)
	c.Jitter, c.Think, c.Concurrency, c.InOrder = -1, ThinkRecorded, 1, true
	r := play(t, c)
	spans := map[string][]TurnSpan{}
	for _, s := range r.Slowest {
		spans[s.Session] = s.Turns
	}
	if got := spans["b"][0].Sent - spans["a"][1].End; got < .399 || got > .401 {
		t.Errorf("the sub-agent begins %v s after the turn, want 0.4", got)
	}
	if last := max(spans["a"][3].End, spans["b"][1].End); spans["c"][0].Sent != last {
		t.Errorf("the next session begins at %v, the family ends at %v", spans["c"][0].Sent, last)
	}
	// One that began when the next turn was sent comes after that.
	child.Start = 2 * time.Second
	c.Sessions = open([]trace.Session{parent, child})
	r = play(t, c)
	for _, s := range r.Slowest {
		spans[s.Session] = s.Turns
	}
	if spans["b"][0].Sent != spans["a"][2].End {
		t.Errorf("the sub-agent begins at %v, the turn that began with it ends at %v", spans["b"][0].Sent, spans["a"][2].End)
	}
	child.Start = 1700 * time.Millisecond
	c.Sessions = open([]trace.Session{parent, child, talk("c", 3<<32, 1, 64)})
	c.PlainSubAgents = true
	if r = play(t, c); r.Slowest[1].Session != "b" || r.Slowest[1].Turns[0].Sent != r.Slowest[2].Turns[3].End {
		t.Errorf("as a session of its own it begins at %v", r.Slowest[1].Turns[0].Sent)
	}
}

// With WholeGroups all samples of a group are sent at one time, and never more than the cap are open.
func TestWholeGroups(t *testing.T) {
	var sessions []trace.Session
	for i, s := range talks(24, 2, 64) {
		s.Group = string(rune('a' + i/4))
		sessions = append(sessions, s)
	}
	c := campaign(sessions, 2)
	c.Jitter, c.Concurrency, c.WholeGroups = -1, 6, true
	w := watched(t, &c)
	r := play(t, c)
	if w.maxOpen > 6 {
		t.Errorf("%d sessions are open at once, cap 6", w.maxOpen)
	}
	sent := map[byte]float64{}
	for _, s := range r.Slowest {
		var i int
		for i = range sessions {
			if sessions[i].ID == s.Session {
				break
			}
		}
		g := sessions[i].Group[0]
		if at, ok := sent[g]; ok && at != s.Turns[0].Sent {
			t.Errorf("samples of group %c begin at %v and %v", g, at, s.Turns[0].Sent)
		}
		sent[g] = s.Turns[0].Sent
	}
	if len(sent) != 6 {
		t.Errorf("%d groups", len(sent))
	}
	c.Concurrency = 3
	if _, err := Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "4 sessions") {
		t.Errorf("a group larger than the cap: %v", err)
	}
}
