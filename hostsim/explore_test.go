package hostsim

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// asks is a function that runs the script of request_headers once, and logs that of log: two programs for two workers of
// one plugin.
func asks(t testing.TB) func(*Worker) {
	return func(w *Worker) {
		_, err := w.NewStream().RequestHeaders(get, true)
		ok(t, err)
	}
}

func logs(t testing.TB) func(*Worker) {
	return func(w *Worker) { ok(t, w.NewStream().End(EndNormal)) }
}

// explorable is a probe of two workers, of which one will run the script of request_headers and the other that of log.
func explorable(t testing.TB, asked, logged string) *probe {
	var script strings.Builder
	for name, program := range map[string]string{"request_headers": asked, "log": logged} {
		for op := range strings.SplitSeq(program, ";") {
			fmt.Fprintf(&script, "%s %s\n", name, op)
		}
	}
	return newFree(t, script.String(), func(c *Config) { c.Workers, c.LogLevel = 2, LogInfo })
}

func (p *probe) twoWorkers() Scenario {
	return Scenario{Workers: []func(*Worker){asks(p.t), logs(p.t)}}
}

func (p *probe) shared(key string) string {
	v, _, _ := p.SharedData().Get(key)
	return string(v)
}

// Numbers of interleavings that one can count: of two workers with three steps each, 6 choose 3; of k steps that do not
// conflict, one.
func TestExploreRunsAsManySchedulesAsThereAre(t *testing.T) {
	three := func(op string) string { return strings.Join([]string{op, op, op}, ";") }
	for _, c := range []struct {
		name, asked, logged string
		brute, pruned       int
	}{
		{"writes to one key", three("sdset k a 0"), three("sdset k b 0"), 20, 20},
		{"writes to two keys", three("sdset k a 0"), three("sdset l b 0"), 20, 1},
		{"reads of one key", three("sdget k"), three("sdget k"), 20, 1},
		{"one reads, one writes", "sdget k", "sdset k b 0", 2, 2},
		{"one step that conflicts among others", "sdset k a 0;sdset l a 0;sdget m", "sdset m b 0;sdset n b 0;sdset k b 0", 20, 3},
		{"a count by compare-and-swap", "sdadd k", "sdadd k", 6, 4},
		{"nothing shared", "get 0 :path;log 2 a", "loglevel", 1, 1},
		{"one worker alone", three("sdset k a 0"), "loglevel", 1, 1},
	} {
		p := explorable(t, c.asked, c.logged)
		for _, unpruned := range []bool{true, false} {
			want := map[bool]int{true: c.brute, false: c.pruned}[unpruned]
			got, err := p.Explore(Exploration{Scenario: p.twoWorkers(), Unpruned: unpruned})
			if err != nil || got.Schedules != want || unpruned && got.Pruned != 0 {
				t.Errorf("%s, unpruned %v: %v, %v; want %d", c.name, unpruned, got, err, want)
			}
		}
	}
}

// Metrics: additions commute with each other and with nothing else.
func TestExploreKnowsMetrics(t *testing.T) {
	for _, c := range []struct {
		kind, asked, logged string
		want                int
	}{
		{"0", "minc m 1;minc m 1", "minc m 1;mrec m 2", 1},
		{"0", "minc m 1", "mget m", 2},
		{"1", "mrec m 1", "mrec m 2", 2},
		{"2", "mrec m 1", "mrec m 2", 1},
	} {
		p := newFree(t, "configure mdef "+c.kind+" m\nrequest_headers "+strings.ReplaceAll(c.asked, ";", "\nrequest_headers ")+
			"\nlog "+strings.ReplaceAll(c.logged, ";", "\nlog "), func(c *Config) { c.Workers = 2 })
		got, err := p.Explore(Exploration{Scenario: p.twoWorkers()})
		if err != nil || got.Schedules != c.want {
			t.Errorf("%+v: %v, %v", c, got, err)
		}
	}
}

// A lost update is found, named, and repeated by its choices.
func TestExploreFindsALostUpdate(t *testing.T) {
	p := explorable(t, "sdinc k", "sdinc k")
	check := func(Played) error {
		if got := p.shared("k"); got != "2" {
			return fmt.Errorf("two additions made %s", got)
		}
		return nil
	}
	before, err := p.Snapshot()
	ok(t, err)
	_, err = p.Explore(Exploration{Scenario: p.twoWorkers(), Check: check})
	var failed *ScheduleError
	if !errors.As(err, &failed) || len(failed.Accesses) != 4 || p.shared("k") != "1" {
		t.Fatalf("err %v", err)
	}
	for _, want := range []string{"two additions made 1\nchoices [", "worker 1 env.proxy_set_shared_data (write data k): OK"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in\n%v", want, err)
		}
	}
	page, pageErr := os.ReadFile("README.md")
	ok(t, pageErr)
	_, shown, _ := strings.Cut(string(page), "```output\n")
	shown, _, _ = strings.Cut(shown, "```")
	shown = strings.NewReplacer("2 of 2 requests passed, the quota is 1", "two additions made 1", "data quota", "data k").Replace(shown)
	got := strings.ReplaceAll(err.Error(), "NOT_FOUND", "OK") // the page's plugin has a quota from the start
	if strings.TrimSpace(shown) != strings.TrimSpace(got) {
		t.Errorf("README.md shows\n%s\nnot\n%v", shown, got)
	}
	for seed := range uint64(3) { // the choices decide, not the seed
		ok(t, p.Restore(before))
		if again := p.Play(p.twoWorkers(), seed, failed.Choices...); !slices.Equal(again.Accesses, failed.Accesses) || check(again) == nil {
			t.Errorf("replayed %v\nwant %v", again, failed.Played)
		}
	}
	p = explorable(t, "sdadd k", "sdadd k")
	if got, err := p.Explore(Exploration{Scenario: p.twoWorkers(), Check: check}); err != nil || got.Schedules != 4 { // in turn, or both read first and one of them asks again
		t.Errorf("by compare-and-swap: %v, %v", got, err)
	}
}

// ends are the states that the interleavings of a scenario end in: what is in shared data, and what each worker read.
func (p *probe) ends(sc Scenario, unpruned bool) (ends []string, found Explored) {
	found, err := p.Explore(Exploration{Scenario: sc, Unpruned: unpruned, Check: func(Played) error {
		var end strings.Builder
		for _, key := range p.SharedData().Keys() {
			fmt.Fprintf(&end, "%s=%s ", key, p.shared(key))
		}
		for w := MainThread; w < p.Workers(); w++ {
			for _, e := range p.Logs() {
				if e.Worker == w {
					fmt.Fprintf(&end, "\n%d %s", w, e.Message)
				}
			}
		}
		ends = append(ends, end.String())
		return nil
	}})
	ok(p.t, err)
	slices.Sort(ends)
	return slices.Compact(ends), found
}

// Pruned or not, the same ends are found: random programs of three workers over two keys, run by a real module.
func TestExplorePrunedFindsEveryEnd(t *testing.T) {
	all, pruned := 0, 0
	for seed := range uint64(20) {
		rng := rand.New(rand.NewPCG(seed, 7))
		var script strings.Builder
		script.WriteString("configure tickevery 1000\nconfigure loglevel\n")
		for _, name := range []string{"request_headers", "log", "tick"} {
			steps := 1 + rng.IntN(2)
			if name == "tick" {
				steps = 1
			}
			for range steps {
				key := string(rune('a' + rng.IntN(2)))
				op := []string{"sdget " + key, "sdset " + key + " " + name + " 0", "sdinc " + key}[rng.IntN(3)]
				fmt.Fprintf(&script, "%s %s\n", name, op)
			}
		}
		p := newFree(t, script.String(), func(c *Config) { c.Workers, c.LogLevel = 2, LogInfo })
		p.config.Clock.(*VirtualClock).Advance(time.Second)
		sc := p.twoWorkers()
		sc.Main = func(w *Worker) { w.RunDue() }
		want, brute := p.ends(sc, true)
		got, reduced := p.ends(sc, false)
		if !slices.Equal(got, want) {
			t.Errorf("seed %d: %d ends, want %d, of\n%s", seed, len(got), len(want), script.String())
		}
		if reduced.Schedules > brute.Schedules {
			t.Errorf("seed %d: %v, without pruning %v", seed, reduced, brute)
		}
		all, pruned = all+brute.Schedules, pruned+reduced.Schedules
	}
	t.Logf("%d schedules, pruned %d", all, pruned)
	if pruned*3 > all {
		t.Errorf("%d of %d schedules were run: nothing is pruned", pruned, all)
	}
}

// What keeps an exploration from being a proof is an error.
func TestExploreLimits(t *testing.T) {
	p := explorable(t, "sdset k a 0;sdset k b 0", "sdset k c 0;sdset k d 0")
	if got, err := p.Explore(Exploration{Scenario: p.twoWorkers(), Limit: 5}); !errors.Is(err, ErrUnexplored) || got.Schedules != 5 {
		t.Errorf("limit of schedules: %v, %v", got, err)
	}
	p = explorable(t, "sdset k a 0;sdset k b 0", "sdset k c 0;sdset k d 0")
	careless := func(w *Worker) { _, _ = w.NewStream().RequestHeaders(get, true) }
	if _, err := p.Explore(Exploration{Scenario: Scenario{Workers: []func(*Worker){careless, careless}}, StepLimit: 3}); !errors.Is(err, ErrUnexplored) {
		t.Errorf("limit of steps: %v", err)
	}
	p = explorable(t, "sdset k a 0", "sdset k c 0")
	sc := p.twoWorkers()
	sc.Workers[1] = func(*Worker) { panic("mine") }
	var failed *ScheduleError
	if _, err := p.Explore(Exploration{Scenario: sc}); !errors.As(err, &failed) || failed.Err.Error() != "panic: mine" {
		t.Errorf("panic: %v", err)
	}
	p = explorable(t, "sdset k a 0;sdset l a 0", "sdset l b 0")
	sc, other := p.twoWorkers(), false
	sc.Workers[0] = func(w *Worker) {
		if other = !other; other {
			asks(t)(w)
		} else {
			logs(t)(w)
		}
	}
	if _, err := p.Explore(Exploration{Scenario: sc}); !errors.Is(err, ErrNotRepeatable) {
		t.Errorf("moody function: %v", err)
	}
}

// Before runs ahead of each schedule, on a host that is as it was.
func TestExploreBefore(t *testing.T) {
	p := explorable(t, "sdadd k", "sdadd k")
	n := 0
	got, err := p.Explore(Exploration{Scenario: p.twoWorkers(), Before: func() {
		n++
		p.pass() // adds 2
	}, Check: func(Played) error {
		if p.shared("k") != "4" {
			return errors.New("counted " + p.shared("k"))
		}
		return nil
	}})
	if err != nil || n != got.Schedules+got.Pruned || p.shared("k") != "" {
		t.Errorf("%v, %v, %d times before, then %q", got, err, n, p.shared("k"))
	}
}

// Whether a message comes before its listener looks is an order that matters.
func TestExploreKnowsQueues(t *testing.T) {
	p := newFree(t, "configure qregister q\nrequest_headers enqueue 1 hello\nqueue_ready dequeue 1", func(c *Config) { c.Workers = 2 })
	heard := map[bool]bool{}
	due := false
	got, err := p.Explore(Exploration{
		Scenario: Scenario{Workers: []func(*Worker){asks(t), func(w *Worker) { due = w.RunDue() }}},
		Check: func(Played) error {
			heard[due] = true
			if left := p.SharedData().Queue("q").Len(); due == (left == 1) {
				return fmt.Errorf("due %v, %d messages left", due, left)
			}
			return nil
		},
	})
	if err != nil || len(heard) != 2 || p.SharedData().Queue("q").Len() != 0 {
		t.Errorf("%v, %v, heard %v, then %d messages", got, err, heard, p.SharedData().Queue("q").Len())
	}
}
