package trace

import (
	"errors"
	"io"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"
)

func count(t *testing.T, r Reader, blockTokens int) Stats {
	t.Helper()
	c := Counter{BlockTokens: blockTokens}
	if err := c.AddAll(r); err != nil {
		t.Fatal(err)
	}
	return c.Stats()
}

func generate(t *testing.T, o GenerateOptions) *Generator {
	t.Helper()
	g, err := Generate(o)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// The defaults are the published campaign, whatever the seed.
func TestGenerateIsTheCampaign(t *testing.T) {
	for seed := range uint64(4) {
		s := count(t, generate(t, GenerateOptions{Seed: seed}), 0)
		if s.Sessions != 610 || s.TurnsPerSession.Max > 99 {
			t.Errorf("seed %d: %d sessions of at most %v turns", seed, s.Sessions, s.TurnsPerSession.Max)
		}
		for _, c := range []struct {
			what                 string
			got, want, tolerance float64
		}{
			{"turns", float64(s.Turns), 19_582, .001},
			{"prompt tokens", float64(s.PromptTokens), 1.57e9, .03},
			{"generated tokens", float64(s.GeneratedTokens), 4.8e6, .03},
			{"median of the last prompts", s.Final.P50, 81_000, .05},
			{"longest prompt", s.Context.Max, 207_000, .001},
		} {
			if math.Abs(c.got/c.want-1) > c.tolerance {
				t.Errorf("seed %d: %s %v, want %v within %v%%", seed, c.what, c.got, c.want, 100*c.tolerance)
			}
		}
	}
}

// Each stratum has its sessions to the one, dealt in another order by another seed; each session goes on from itself.
func TestGenerateDealsStrata(t *testing.T) {
	var orders [][]int
	for seed := range uint64(2) {
		g := generate(t, GenerateOptions{Seed: seed})
		sessions, err := ReadAll(g)
		if err != nil {
			t.Fatal(err)
		}
		var got, order []int
		for _, st := range CampaignStrata() {
			n := 0
			for _, s := range sessions {
				if turns := len(s.Turns); turns >= st.Min && turns <= st.Max {
					n++
				}
			}
			got = append(got, n)
		}
		for _, s := range sessions {
			checkSession(t, s)
			checkReplays(t, s)
			order = append(order, len(s.Turns))
			if first := s.Turns[0].Input; first < 10_600 || first > 12_200 {
				t.Errorf("session %s: first prompt %d", s.ID, first)
			}
		}
		if want := []int{106, 222, 198, 64, 20}; !slices.Equal(got, want) {
			t.Errorf("seed %d: strata %v, want %v", seed, got, want)
		}
		orders = append(orders, order)
	}
	if slices.Equal(orders[0], orders[1]) {
		t.Error("two seeds, one order")
	}
}

// checkReplays holds a session to what Replays says of it.
func checkReplays(t *testing.T, s Session) {
	t.Helper()
	for i := 1; i < len(s.Turns); i++ {
		a, b := s.Turns[i-1], s.Turns[i]
		if b.Input < a.Input+a.Output || !extends(b.Blocks, a.Blocks) {
			t.Fatalf("turn %d of %q does not go on from the one before: %+v, %+v", i, s.ID, a, b)
		}
	}
}

func TestGenerateSameSeedSameSessions(t *testing.T) {
	o := GenerateOptions{Seed: 7, Sessions: 50, System: 5000, GroupSize: 4, BlockTokens: 64}
	a, err := ReadAll(generate(t, o))
	if err != nil {
		t.Fatal(err)
	}
	b, err := ReadAll(generate(t, o))
	if err != nil || !reflect.DeepEqual(a, b) {
		t.Fatal("the same options gave other sessions", err)
	}
	o.Seed++
	if b, _ = ReadAll(generate(t, o)); reflect.DeepEqual(a[0].Turns, b[0].Turns) {
		t.Error("another seed, the same first session")
	}
	// Samples of a task share their prompt; all sessions share the system prompt and nothing else.
	ids := func(i int) []uint64 { return AppendBlocks(nil, a[i].Turns[0].Blocks) }
	if a[0].Group != "0" || a[3].Group != "0" || a[4].Group != "1" || a[0].ID != "0/0" || a[5].ID != "1/1" {
		t.Errorf("names %q %q %q", a[0].ID, a[3].Group, a[5].ID)
	}
	if full := a[0].Turns[0].Input / 64; a[0].Turns[0].Input != a[3].Turns[0].Input || !slices.Equal(ids(0)[:full], ids(3)[:full]) {
		t.Error("two samples of a task begin with different prompts")
	}
	if x, y := ids(0), ids(4); !slices.Equal(x[:5000/64], y[:5000/64]) || x[5000/64] == y[5000/64] {
		t.Error("two tasks do not share exactly the system prompt")
	}
}

// However many there are, the generator makes one session at a time.
func TestGenerateStreams(t *testing.T) {
	g := generate(t, GenerateOptions{Sessions: 1_000_000})
	allocs := testing.AllocsPerRun(200, func() {
		if _, err := g.Next(); err != nil {
			t.Fatal(err)
		}
	})
	if g.Sessions() != 1_000_000 || allocs > 500 {
		t.Errorf("%d sessions, %v allocations each", g.Sessions(), allocs)
	}
	g.next = 1_000_000
	if _, err := g.Next(); !errors.Is(err, io.EOF) {
		t.Errorf("at the end: %v", err)
	}
}

// Each place among the sessions is taken once, for every number of them.
func TestGenerateShares(t *testing.T) {
	for n := 1; n < 200; n++ {
		g := generate(t, GenerateOptions{Seed: uint64(n), Sessions: n})
		var got []int
		for i := range n {
			got = append(got, int(g.share(i)*float64(n)))
		}
		slices.Sort(got)
		for i, place := range got {
			if i != place {
				t.Fatalf("%d sessions: places %v", n, got)
			}
		}
	}
}

// A context that has no room left cuts what is generated, never the conversation.
func TestGenerateAtTheBound(t *testing.T) {
	sessions, err := ReadAll(generate(t, GenerateOptions{Sessions: 20, Strata: []Stratum{{50, 60, 1}}, FirstPrompt: [2]int{90, 100}, MaxContext: 2000, Output: 500}))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sessions {
		checkReplays(t, s)
		if last := s.Turns[len(s.Turns)-1].Input; last > 2000 {
			t.Errorf("a prompt of %d", last)
		}
	}
}

func TestGenerateRefuses(t *testing.T) {
	for _, tt := range []struct {
		o    GenerateOptions
		is   error
		want string
	}{
		{GenerateOptions{Sessions: -1}, ErrGenerate, "-1 sessions"},
		{GenerateOptions{FirstPrompt: [2]int{5, 4}}, ErrGenerate, "5 to 4"},
		{GenerateOptions{MaxContext: 100}, ErrGenerate, "contexts of at most 100"},
		{GenerateOptions{Growth: -1}, ErrGenerate, "growth -1"},
		{GenerateOptions{System: 10_601}, ErrGenerate, "10601"},
		{GenerateOptions{Strata: []Stratum{}}, ErrStrata, "none"},
		{GenerateOptions{Strata: []Stratum{{3, 2, 1}}, Sessions: 1}, ErrStrata, "3-2:1"},
	} {
		if _, err := Generate(tt.o); !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%+v: error %v, want %q", tt.o, err, tt.want)
		}
	}
}

func TestParseStrata(t *testing.T) {
	got, err := ParseStrata("6-15:106, 16-30:222,31-50:198,51-75:64,76-99:20")
	if err != nil || !slices.Equal(got, CampaignStrata()) {
		t.Errorf("%v, %v", got, err)
	}
	for _, want := range got {
		if back, err := ParseStrata(want.String()); err != nil || !slices.Equal(back, []Stratum{want}) {
			t.Errorf("%v reads as %v, %v", want, back, err)
		}
	}
	for _, bad := range []string{"", "6-15", "6:15", "6-15:x", "15-6:1", "0-1:1", "1-2:0", "1-200000:1", "1-2:3,"} {
		if _, err := ParseStrata(bad); !errors.Is(err, ErrStrata) {
			t.Errorf("%q: error %v", bad, err)
		}
	}
}
