package trace

import (
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

// The bundled trace against integers that a separate script (another language, no code shared) took from the file.
func TestBundledCounts(t *testing.T) {
	sessions, err := Bundled().ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var turns, input, output, blocks, hits, unrecorded int
	var think time.Duration
	longest := 0
	seen := map[uint64]bool{}
	for _, s := range sessions {
		turns += len(s.Turns)
		longest = max(longest, len(s.Turns))
		for _, turn := range s.Turns {
			input += turn.Input
			output += turn.Output
			think += turn.Think
			if turn.API == 0 {
				unrecorded++
			}
			ids := AppendBlocks(nil, turn.Blocks)
			blocks += len(ids)
			hits += prefixSeen(seen, ids)
		}
	}
	for _, c := range []struct {
		what      string
		got, want int
	}{
		{"sessions", len(sessions), 24},
		{"turns", turns, 736},
		{"turns of the longest", longest, 78},
		{"input tokens", input, 47_965_338},
		{"output tokens", output, 359_323},
		{"block references", blocks, 749_105},
		{"different blocks", len(seen), 36_411},
		{"block references in a prefix seen before", hits, 712_694},
		{"seconds of think time", int(think / time.Second), 55_534},
		{"answers of unrecorded duration", unrecorded, 44},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", c.what, c.got, c.want)
		}
	}
}

// prefixSeen returns how many ids from the first on were seen before, and marks all of them.
func prefixSeen(seen map[uint64]bool, ids []uint64) int {
	hits := 0
	for hits < len(ids) && seen[ids[hits]] {
		hits++
	}
	for _, id := range ids {
		seen[id] = true
	}
	return hits
}

const row1, row2 = uint64(1) << 32, uint64(2) << 32

func TestBlocksOfARow(t *testing.T) {
	class0 := uint64(classSpace)
	tests := []struct {
		name, row string
		want      [][]uint64 // ids of each turn
	}{
		{"fresh blocks follow on", `{"id":"a","tool":0,"sys":0,"r":[[0,192,1,0,null,[0,3]],[1,256,1,0,null,[2,2]]]}`,
			[][]uint64{{row1 | 1, row1 | 2, row1 | 3}, {row1 | 1, row1 | 2, row1 | 4, row1 | 5}}},
		{"first blocks belong to the class", `{"id":"a","tool":100,"sys":28,"r":[[0,200,1,0,null,[0,3]]]}`,
			[][]uint64{{class0 | 1, class0 | 2, row1 | 3}}},
		{"an explicit range returns to old blocks", `{"id":"a","tool":64,"sys":0,"r":[[0,64,1,0,2,[0,1]],[1,192,1,0,null,[0,[[2,1],[1,2]]]],[2,256,1,0,1,[3,1]]]}`,
			[][]uint64{{class0 | 1}, {row1 | 2, class0 | 1, row1 | 2}, {row1 | 2, class0 | 1, row1 | 2, row1 | 3}}},
		{"keep alone adds nothing", `{"id":"a","tool":0,"sys":0,"r":[[0,130,1,0,null,[0,2]],[1,140,1,0,null,[2]]]}`,
			[][]uint64{{row1 | 1, row1 | 2}, {row1 | 1, row1 | 2}}},
		{"less than a block has no id", `{"id":"a","tool":0,"sys":0,"r":[[0,63,1,0,null,[0,0]]]}`, [][]uint64{{}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := NewWEKAReader(strings.NewReader(tt.row)).Next()
			if err != nil {
				t.Fatal(err)
			}
			for i, turn := range s.Turns {
				if got := AppendBlocks([]uint64{}, turn.Blocks); !reflect.DeepEqual(got, tt.want[i]) {
					t.Errorf("turn %d: %x, want %x", i, got, tt.want[i])
				}
			}
		})
	}
}

// Rows share their first blocks exactly when tool and sys are both equal, not when only the sum is.
func TestClassesOfRows(t *testing.T) {
	lines := `{"id":"a","tool":64,"sys":64,"r":[[0,128,1,0,null,[0,2]]]}
{"id":"b","tool":96,"sys":32,"r":[[0,128,1,0,null,[0,2]]]}

{"id":"c","tool":64,"sys":64,"r":[[0,192,1,0,null,[0,3]]]}`
	sessions, err := NewWEKAReader(strings.NewReader(lines)).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := sessions[0].Turns[0].Blocks, sessions[1].Turns[0].Blocks, sessions[2].Turns[0].Blocks
	if a[0].First != c[0].First {
		t.Errorf("equal tool and sys, but blocks %x and %x", a[0].First, c[0].First)
	}
	if a[0].First == b[0].First {
		t.Errorf("different tool and sys, but both begin with block %x", a[0].First)
	}
	if want := row1*3 | 3; c[1].First != want {
		t.Errorf("block of the row: %x, want %x", c[1].First, want)
	}
}

func TestSubAgents(t *testing.T) {
	row := `{"id":"a","tool":64,"sys":0,"r":[[0,128,9,0,4.5,[0,2]],
		{"t":2.5,"sub":[[0,64,1,0,1,[0,[[3,1]]]],{"t":1,"sub":[[0,64,1,0,1,[0,1]]],"status":"completed"},[3.25,128,1,1.5,1,[1,1]]],"status":"completed"},
		[9,192,9,4.5,null,[2,[[6,1]]]],
		{"t":10,"sub":[[0,64,1,0,1,[0,[[3,1]]]]],"status":"completed"}]}`
	sessions, err := NewWEKAReader(strings.NewReader(strings.ReplaceAll(row, "\n", " "))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	type brief struct {
		id, parent string
		start      time.Duration
		turns      int
		first      uint64
	}
	var got []brief
	for _, s := range sessions {
		got = append(got, brief{s.ID, s.Parent, s.Start, len(s.Turns), s.Turns[0].Blocks[0].First})
	}
	want := []brief{
		{"a", "", 0, 2, classSpace | 1},
		{"a/sub1", "a", 2500 * time.Millisecond, 2, row1 | 3},
		{"a/sub1/sub1", "a/sub1", 3500 * time.Millisecond, 1, row1 | 4},
		{"a/sub2", "a", 10 * time.Second, 1, row1 | 3},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
	turn := sessions[1].Turns[1]
	if turn.At != 3250*time.Millisecond || turn.Think != 1500*time.Millisecond || turn.API != time.Second {
		t.Errorf("times of the sub-agent's second turn: %+v", turn)
	}
	if first := turn.Blocks[0].First; BlockCount(turn.Blocks) != 2 || first != row1|3 {
		t.Errorf("a sub-agent keeps its own blocks, not its parent's: %+v", turn.Blocks)
	}
}

// Every line here is refused with its number and a reason that names the place, and the good line after it is read.
func TestBadLines(t *testing.T) {
	tests := []struct{ name, row, reason string }{
		{"not JSON", `{"id":`, "unexpected EOF"},
		{"two values", `{"id":"x","tool":0,"sys":0,"r":[[0,64,1,0,1,[0,1]]]} {}`, "more text"},
		{"unknown key", `{"id":"x","tools":0,"sys":0,"r":[]}`, `"tools"`},
		{"no id", `{"tool":0,"sys":0,"r":[[0,64,1,0,1,[0,1]]]}`, "id: missing"},
		{"id again", `{"id":"first","tool":0,"sys":0,"r":[[0,64,1,0,1,[0,1]]]}`, "line 1 already"},
		{"no requests", `{"id":"x","tool":0,"sys":0,"r":[]}`, "no requests"},
		{"huge tool", `{"id":"x","tool":9223372036854775807,"sys":9223372036854775807,"r":[[0,64,1,0,1,[0,1]]]}`, "above"},
		{"negative tool", `{"id":"x","tool":-1,"sys":0,"r":[[0,64,1,0,1,[0,1]]]}`, "negative"},
		{"short request", `{"id":"x","tool":0,"sys":0,"r":[[0,64,1,0,1]]}`, "r[0]: 5 fields"},
		{"null input", `{"id":"x","tool":0,"sys":0,"r":[[0,null,1,0,1,[0,1]]]}`, "field 1: null"},
		{"no input", `{"id":"x","tool":0,"sys":0,"r":[[0,0,1,0,1,[0,0]]]}`, "0 input"},
		{"text as number", `{"id":"x","tool":0,"sys":0,"r":[[0,"64",1,0,1,[0,1]]]}`, "field 1"},
		{"negative time", `{"id":"x","tool":0,"sys":0,"r":[[-1,64,1,0,1,[0,1]]]}`, "-1 is not a time"},
		{"time without end", `{"id":"x","tool":0,"sys":0,"r":[[0,64,1,1e300,1,[0,1]]]}`, "is not a time"},
		{"back in time", `{"id":"x","tool":0,"sys":0,"r":[[5,64,1,0,1,[0,1]],[4,64,1,0,1,[1]]]}`, "r[1]: sent 4s"},
		{"keeps more than there was", `{"id":"x","tool":0,"sys":0,"r":[[0,64,1,0,1,[0,1]],[1,192,1,0,1,[2,1]]]}`, "keeps 2 of the 1"},
		{"too few blocks", `{"id":"x","tool":0,"sys":0,"r":[[0,128,1,0,1,[0,1]]]}`, "1 of them, but 128"},
		{"too many blocks", `{"id":"x","tool":0,"sys":0,"r":[[0,127,1,0,1,[0,2]]]}`, "2 of them, but 127"},
		{"negative count", `{"id":"x","tool":0,"sys":0,"r":[[0,64,1,0,1,[0,-1]]]}`, "outside"},
		{"block number zero", `{"id":"x","tool":0,"sys":0,"r":[[0,64,1,0,1,[0,[[0,1]]]]]}`, "outside"},
		{"block number too high", `{"id":"x","tool":0,"sys":0,"r":[[0,64,1,0,1,[0,[[4294967295,1]]]]]}`, "outside"},
		{"range of three", `{"id":"x","tool":0,"sys":0,"r":[[0,64,1,0,1,[0,[[1,1,1]]]]]}`, "not [first, count]"},
		{"three values", `{"id":"x","tool":0,"sys":0,"r":[[0,64,1,0,1,[0,1,1]]]}`, "3 values"},
		{"sub-agent without start", `{"id":"x","tool":0,"sys":0,"r":[[0,64,1,0,1,[0,1]],{"sub":[[0,64,1,0,1,[0,1]]]}]}`, "r[1].t: missing"},
		{"sub-agent without requests", `{"id":"x","tool":0,"sys":0,"r":[[0,64,1,0,1,[0,1]],{"t":1,"sub":[]}]}`, "r[1].sub: no requests"},
		{"fault inside a sub-agent", `{"id":"x","tool":0,"sys":0,"r":[[0,64,1,0,1,[0,1]],{"t":1,"sub":[[0,64]]}]}`, "r[1].sub[0]: 2 fields"},
		{"only sub-agents", `{"id":"x","tool":0,"sys":0,"r":[{"t":1,"sub":[[0,64,1,0,1,[0,1]]]}]}`, "no requests of its own"},
		{"too long", `{"id":"` + strings.Repeat("x", MaxLineBytes) + `"}`, "longer than"},
	}
	const good = `{"id":"%","tool":64,"sys":0,"r":[[0,128,1,0,null,[0,2]]]}`
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			first, last := strings.Replace(good, "%", "first", 1), strings.Replace(good, "%", "last", 1)
			r := NewWEKAReader(strings.NewReader(first + "\n" + tt.row + "\n" + last))
			if _, err := r.Next(); err != nil {
				t.Fatalf("line 1: %v", err)
			}
			_, err := r.Next()
			var bad *LineError
			if !errors.As(err, &bad) || !errors.Is(err, ErrBadLine) {
				t.Fatalf("line 2: error %v, want a LineError", err)
			}
			if bad.Line != 2 || !strings.Contains(bad.Reason, tt.reason) {
				t.Errorf("%v, want line 2 and %q", bad, tt.reason)
			}
			s, err := r.Next()
			if err != nil || s.ID != "last" {
				t.Fatalf("line 3: session %q, error %v", s.ID, err)
			}
			// The bad row took no number: the next good one is the second.
			if got := s.Turns[0].Blocks[1].First; got != row2|2 {
				t.Errorf("block %x after the bad line, want %x", got, row2|2)
			}
			if _, err := r.Next(); !errors.Is(err, io.EOF) {
				t.Errorf("at the end: %v", err)
			}
		})
	}
}

type brokenReader struct{ err error }

func (b brokenReader) Read([]byte) (int, error) { return 0, b.err }

func TestReaderErrorPassesThrough(t *testing.T) {
	broken := errors.New("disk gone")
	if _, err := NewWEKAReader(brokenReader{broken}).ReadAll(); !errors.Is(err, broken) {
		t.Errorf("error %v, want the reader's own", err)
	}
}

// Whatever the text, the reader ends, and what it accepts holds the invariants of Session.
func FuzzWEKAReader(f *testing.F) {
	f.Add(`{"id":"a","tool":100,"sys":28,"r":[[0,200,1,0,null,[0,3]],[1,200,1,0,1,[3]]]}`)
	f.Add(`{"id":"a","tool":0,"sys":0,"r":[[0,64,1,0,1,[0,[[1,1]]]],{"t":1,"sub":[[0,64,1,0,1,[0,1]]],"status":"x"}]}`)
	f.Add("\n\n{}\nnull\n[]")
	f.Fuzz(func(t *testing.T, text string) {
		r := NewWEKAReader(strings.NewReader(text))
		for {
			s, err := r.Next()
			if errors.Is(err, ErrBadLine) {
				continue
			}
			if err != nil {
				return
			}
			for i, turn := range s.Turns {
				if turn.Input < 1 || BlockCount(turn.Blocks) != turn.Input/WEKABlockTokens || turn.Think < 0 || turn.API < 0 {
					t.Fatalf("turn %d of %q breaks an invariant: %+v", i, s.ID, turn)
				}
			}
		}
	})
}
