package trace

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
)

func statsOf(t *testing.T, path string, blockTokens int) Stats {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	r, _, err := Open(f, Options{})
	if err != nil {
		t.Fatal(err)
	}
	return count(t, r, blockTokens)
}

// The published conversation trace in the integers that NVIDIA Dynamo's recipe for it states: requests, block references,
// unique ones and repeats, 36.64%.
func TestMooncakeCounts(t *testing.T) {
	s := statsOf(t, mooncakeConversation, 0)
	got := []int{s.Turns, s.BlockReferences, s.UniqueBlocks, s.RepeatedBlocks}
	if want := []int{12_031, 288_500, 182_790, 105_710}; !slices.Equal(got, want) {
		t.Errorf("requests, references, unique, repeats: %v, want %v", got, want)
	}
	if rate := float64(s.RepeatedBlocks) / float64(s.BlockReferences); math.Round(rate*1e4) != 3664 {
		t.Errorf("repeats %.4f, want 0.3664", rate)
	}
}

// The 215 sessions without their sub-agents in the figures that are known of them: turns, mean context, and the hit rate
// when sessions share nothing, in blocks of 64 and of 4,160 tokens. With what they share it is a little higher.
func TestWEKA215Counts(t *testing.T) {
	var main []Session
	for _, s := range sessionsOf(t, "testdata/weka_cc_215.rl-like.compact.jsonl", Options{}) {
		if s.Parent == "" {
			main = append(main, s)
		}
	}
	for _, tt := range []struct {
		block          int
		session, ideal float64
	}{{64, .9511, .9534}, {4160, .9209, .9229}} {
		c := Counter{BlockTokens: tt.block}
		for _, s := range main {
			if err := c.Add(s); err != nil {
				t.Fatal(err)
			}
		}
		s := c.Stats()
		if s.Sessions != 215 || s.Turns != 6921 || math.Round(s.Context.Mean/1000) != 65 {
			t.Errorf("%d sessions, %d turns, mean context %v", s.Sessions, s.Turns, s.Context.Mean)
		}
		if math.Round(s.SessionHitRate*1e4) != math.Round(tt.session*1e4) || math.Round(s.IdealHitRate*1e4) != math.Round(tt.ideal*1e4) {
			t.Errorf("blocks of %d: hit rates %.4f and %.4f, want %.4f and %.4f", tt.block, s.SessionHitRate, s.IdealHitRate, tt.session, tt.ideal)
		}
	}
}

// An id counts once, be it a full block's here and a rest's there.
func TestStatsCountTails(t *testing.T) {
	rows := `[0,1000,1,[[0,2]],0]
[1,1024,1,[[0,2]],1]
[2,1025,1,[[0,3]],2]
[3,513,1,[[5,2]],3]`
	r, _, err := Open(strings.NewReader(rows), Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := count(t, r, 0)
	if got, want := []int{s.BlockReferences, s.UniqueBlocks, s.RepeatedBlocks}, []int{9, 5, 4}; !slices.Equal(got, want) {
		t.Errorf("references, unique, repeated %v, want %v", got, want)
	}
}

// A group of two samples, counted by hand: blocks of 16, the first prompt 100 tokens (6 blocks).
func TestStatsByHand(t *testing.T) {
	rows := `{"group":"g","stream":0,"prompt_len":100,"out_lens":[28,7],"obs_lens":[32]}
{"group":"g","stream":1,"prompt_len":100,"out_lens":[20],"obs_lens":[]}
{"group":"h","prompt_len":40,"out_lens":[20],"obs_lens":[]}`
	r, _, err := Open(strings.NewReader(rows), Options{})
	if err != nil {
		t.Fatal(err)
	}
	// g/0: prompts of 100 and 160; the second finds 127 computed tokens (the last generated one is not), 7 blocks. g/1 finds
	// 6. h finds none.
	s := count(t, r, 0)
	want := Stats{
		Sessions: 3, Groups: 1, Turns: 4, PromptTokens: 400, GeneratedTokens: 75,
		TurnsPerSession: Distribution{4.0 / 3, 1, 2}, Context: Distribution{100, 100, 160}, Final: Distribution{100, 100, 160},
		BlockTokens: 16, BlockReferences: 24, UniqueBlocks: 12, RepeatedBlocks: 12, CacheBlockTokens: 16,
		IdealHitRate: (7 + 6) * 16.0 / 400, SessionHitRate: 7 * 16.0 / 400,
	}
	if s != want {
		t.Errorf("got  %+v\nwant %+v", s, want)
	}
	if r, _, err = Open(strings.NewReader(rows), Options{}); err != nil {
		t.Fatal(err)
	}
	// In blocks of 48 the second prompt of g/0 finds 2, g/1 finds 2.
	if s := count(t, r, 48); s.CacheBlockTokens != 48 || s.IdealHitRate != 4*48.0/400 {
		t.Errorf("blocks of 48: %+v", s)
	}
}

func TestStatsRefusesABlockSize(t *testing.T) {
	c := Counter{BlockTokens: 100}
	err := c.AddAll(Bundled())
	if !errors.Is(err, ErrBlockSize) || !strings.Contains(err.Error(), "100 is not a multiple of the trace's 64 tokens") {
		t.Errorf("error %v", err)
	}
	if s := c.Stats(); s.Sessions != 0 || s.IdealHitRate != 0 {
		t.Errorf("counted all the same: %+v", s)
	}
}

// The set against a plain map, over random runs that overlap.
func TestBlockSet(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	var set blockSet
	naive := map[uint64]bool{}
	for range 5000 {
		runs := make([]Run, r.IntN(4))
		for i := range runs {
			runs[i] = Run{First: r.Uint64N(40_000), Count: r.IntN(300)}
			if r.IntN(10) == 0 {
				runs[i].First += 1<<64 - 50_000
			}
		}
		ids := AppendBlocks(nil, runs)
		want := 0
		for want < len(ids) && naive[ids[want]] {
			want++
		}
		if got := set.prefix(runs); got != want {
			t.Fatalf("prefix of %v: %d, want %d", runs, got, want)
		}
		n := r.IntN(len(ids) + 2)
		set.add(runs, n)
		for _, id := range ids[:min(n, len(ids))] {
			naive[id] = true
		}
		if set.size != len(naive) {
			t.Fatalf("size %d, want %d", set.size, len(naive))
		}
	}
}
