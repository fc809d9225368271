package hostsim

import (
	"slices"
	"testing"
	"time"
)

func TestInterleaveIsRepeatable(t *testing.T) {
	run := func(seed uint64) (trace string, mismatches int) {
		p := newProbe(t, "request_headers sdadd count", func(c *Config) { c.Workers, c.Seed = 3, 1 })
		fn := func(w *Worker) {
			for range 4 {
				s := w.NewStream()
				if _, err := s.RequestHeaders(get, true); err != nil {
					t.Error(err)
				}
				if err := s.End(EndNormal); err != nil {
					t.Error(err)
				}
			}
		}
		for _, a := range p.Interleave(seed, fn, fn, fn) {
			trace += a.String() + "\n"
			if a.Status == StatusCASMismatch {
				mismatches++
			}
		}
		if v, _, _ := p.SharedData().Get("count"); string(v) != "12" {
			t.Errorf("count %s, want 12", v)
		}
		return trace, mismatches
	}
	one, mismatches := run(1)
	again, _ := run(1)
	other, _ := run(2)
	if one != again {
		t.Errorf("seed 1 gave\n%s\nthen\n%s", one, again)
	}
	if one == other {
		t.Error("seeds 1 and 2 gave the same order")
	}
	if mismatches == 0 {
		t.Errorf("no write was raced in\n%s", one)
	}
}

func TestInterleavePassesOnAPanic(t *testing.T) {
	p := newProbe(t, "request_headers sdadd count", func(c *Config) { c.Workers = 2 })
	defer func() {
		if got := recover(); got != "mine" {
			t.Errorf("recovered %v", got)
		}
	}()
	p.Interleave(1, func(*Worker) { panic("mine") }, func(w *Worker) {})
	t.Error("Interleave returned")
}

// The main thread takes part with a tick, and a choice list decides where it comes in.
func TestPlayWithTheMainThread(t *testing.T) {
	p := newFree(t, "configure tickevery 1000\ntick sdset key tick 0\nrequest_headers sdget key\nrequest_headers sdget key", func(c *Config) { c.LogLevel = LogInfo })
	p.config.Clock.(*VirtualClock).Advance(time.Second)
	before, err := p.Snapshot()
	ok(t, err)
	sc := Scenario{Main: func(w *Worker) {
		if !w.RunDue() {
			t.Error("no tick was due")
		}
	}, Workers: []func(*Worker){asks(t)}}
	for _, c := range []struct {
		choices []int
		want    string
	}{
		{[]int{MainThread, 0, 0}, "sdget key = 0 tick\nsdget key = 0 tick"},
		{[]int{0, MainThread, 0}, "sdget key = 1\nsdget key = 0 tick"},
		{[]int{0, 0, MainThread}, "sdget key = 1\nsdget key = 1"},
	} {
		ok(t, p.Restore(before))
		p.seen = len(p.Logs())
		played := p.Play(sc, 0, c.choices...)
		if !slices.Equal(played.Choices, c.choices) {
			t.Errorf("choices %v, want %v", played.Choices, c.choices)
		}
		p.results(c.want)
	}
}

// By default workers change over only where others can notice; on demand everywhere, but not within an allocation.
func TestPlayAtEveryCall(t *testing.T) {
	p := newProbe(t, "request_headers get 0 :path\nrequest_headers sdget key\nlog loglevel", func(c *Config) { c.Workers = 2 })
	sc := Scenario{Workers: []func(*Worker){asks(t), logs(t)}}
	if got := p.Play(sc, 1); len(got.Accesses) != 1 || got.Accesses[0].String() != "worker 0 env.proxy_get_shared_data (read data key): NOT_FOUND" {
		t.Errorf("by default %v", got.Accesses)
	}
	sc.EveryCall = true
	calls := map[string]int{}
	for _, a := range p.Play(sc, 1).Accesses {
		calls[a.Call]++
		if a.Call == "env.proxy_get_header_map_value" && a.Kind != AccessOwn {
			t.Errorf("%v", a)
		}
	}
	for call, n := range map[string]int{"env.proxy_get_header_map_value": 1, "env.proxy_get_shared_data": 1, "env.proxy_get_log_level": 1} {
		if calls[call] != n {
			t.Errorf("%d steps of %s, want %d, of %v", calls[call], call, n, calls)
		}
	}
	if calls["env.proxy_log"] < 5 {
		t.Errorf("steps %v", calls)
	}
}
