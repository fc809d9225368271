package hostsim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// tally is some gateways that count their requests in one service, a number, by the guest of that name.
type tally struct {
	Fleet
	t       testing.TB
	number  int
	streams [][]*Stream // of each gateway
	failed  []int       // requests of each gateway that went on without having been counted
	counted []int
}

// newTally starts gateways that count in a way: "put" or "compare".
func newTally(t testing.TB, gateways int, way string) *tally {
	y := &tally{t: t}
	clock := NewVirtualClock()
	for i := range gateways {
		q := NewHeldCalls(string(rune('A'+i)), y.serve)
		h, err := New(context.Background(), Config{Wasm: guest(t, "tally"), PluginConfig: []byte(way), Clock: clock, HTTPCall: q.HTTPCall})
		ok(t, err)
		t.Cleanup(func() { ok(t, h.Close()) })
		y.Hosts, y.Calls = append(y.Hosts, h), append(y.Calls, q)
	}
	y.Others = append(y.Others, func() func() {
		was := y.number
		return func() { y.number = was }
	})
	return y
}

func (y *tally) serve(c *HTTPCall) bool {
	status := "200"
	if c.Headers.Value(":method") == "PUT" {
		if old, found := c.Headers.Get("if-match"); found && old != strconv.Itoa(y.number) {
			status = "412"
		} else {
			y.number, _ = strconv.Atoi(string(c.Body))
		}
	}
	c.Respond(HTTPResponse{Headers: Headers{{":status", status}}, Body: []byte(strconv.Itoa(y.number))})
	return true
}

func (y *tally) before() {
	y.streams, y.failed, y.counted = make([][]*Stream, len(y.Hosts)), make([]int, len(y.Hosts)), make([]int, len(y.Hosts))
}

// requests are a gateway's requests, as an event each time.
func (y *tally) requests(gateway, times int) Event {
	return Event{Name: "request at " + y.Calls[gateway].name, Times: times, Do: func() {
		s := y.Hosts[gateway].Worker(0).NewStream()
		step, err := s.RequestHeaders(get, true)
		if err != nil || step.Flow != Wait {
			panic(fmt.Sprint(step.Flow, err))
		}
		y.streams[gateway] = append(y.streams[gateway], s)
	}}
}

// look takes down which requests have gone on.
func (y *tally) look() error {
	for i, streams := range y.streams {
		y.streams[i] = slices.DeleteFunc(streams, func(s *Stream) bool {
			if s.RequestReady().Flow != Forward {
				return false
			}
			if _, found := s.Headers(MapRequestHeaders).Get("x-failed"); found {
				y.failed[i]++
			} else {
				y.counted[i]++
			}
			ok(y.t, s.End(EndNormal))
			return true
		})
	}
	return nil
}

// settled has everything answered, and finds fault with a number that is none of those that can be.
func (y *tally) settled() error {
	for _, q := range y.Calls {
		q.Through()
	}
	y.Advance(time.Minute)
	ok(y.t, y.look())
	counted, failed := 0, 0
	for i := range y.Hosts {
		counted, failed = counted+y.counted[i], failed+y.failed[i]
		if n := len(y.streams[i]); n > 0 {
			return fmt.Errorf("%d requests wait for ever", n)
		}
	}
	if y.number < counted || y.number > counted+failed {
		return fmt.Errorf("%d requests were counted as %d", counted, y.number)
	}
	return nil
}

// orders are those of a number of requests at each gateway, and their calls.
func (y *tally) orders(each, calls, failures int) Orders {
	x := Orders{Before: y.before, Check: y.look, End: y.settled}
	for i, q := range y.Calls {
		x.Events = append(x.Events, y.requests(i, each))
		if failures == 0 {
			x.Events = append(x.Events, q.Events(calls, 0)...)
		} else {
			x.Events = append(x.Events, q.Events(calls, failures, TimedOut)...)
		}
	}
	return x
}

// An update that two gateways can lose is found, named in as few events as it takes, and repeated by their names.
func TestFleetFindsALostUpdate(t *testing.T) {
	y := newTally(t, 2, "put")
	start, err := y.Snapshot()
	ok(t, err)
	x := y.orders(1, 2, 0)
	explored, err := y.Explore(x)
	var failed *OrderError
	if !errors.As(err, &failed) || !failed.AtEnd || y.number != 1 {
		t.Fatalf("%v, err %v", explored, err)
	}
	t.Logf("%v\n%v", explored, err)
	if len(failed.Events) > 6 {
		t.Errorf("%d events", len(failed.Events))
	}
	for _, want := range []string{"2 requests were counted as 1\n", "\n      A's call 0: GET /count \n", "\n      A's call: PUT /count 1\n", "\n  the end\n", "is answered 200 0\n"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("no %q", want)
		}
	}
	for range 2 {
		ok(t, y.Restore(start))
		again := y.Play(x, failed.AtEnd, failed.Events...)
		if again == nil || again.Error() != err.Error() {
			t.Errorf("played again: %v", again)
		}
	}
	ok(t, y.Restore(start))
	if err := y.Play(x, true, "A's call 0 is answered"); !errors.Is(err, ErrNotRepeatable) {
		t.Errorf("an answer without a call: %v", err)
	}
}

// The same with compare passes, however the calls go, and also if answers get lost.
func TestFleetPassesWhatIsRight(t *testing.T) {
	for _, c := range []struct{ gateways, each, calls, failures int }{{2, 1, 4, 0}, {2, 1, 2, 1}, {1, 2, 4, 1}} {
		y := newTally(t, c.gateways, "compare")
		explored, err := y.Explore(y.orders(c.each, c.calls, c.failures))
		if err != nil {
			t.Errorf("%+v: %v", c, err)
		}
		t.Logf("%+v: %v", c, explored)
		if y.number != 0 || y.Calls[0].Len() != 0 {
			t.Errorf("not set back: the service has %d", y.number)
		}
	}
}

// A call can be lost on its way there, on its way back, or be carried out when nobody waits for it any more; and all that
// is pruned ends as something that is not.
func TestFleetEnds(t *testing.T) {
	for _, c := range []struct {
		gateways, each, calls, failures int
		way                             string
	}{{1, 1, 2, 1, "put"}, {1, 2, 3, 0, "put"}, {2, 1, 2, 0, "put"}, {2, 1, 1, 1, "compare"}} {
		y := newTally(t, c.gateways, c.way)
		var ends [2]map[string]bool
		var explored [2]ExploredOrders
		for i, unpruned := range []bool{true, false} {
			ends[i] = map[string]bool{}
			x := y.orders(c.each, c.calls, c.failures)
			x.Unpruned = unpruned
			x.Check = func() error { // states on the way as well
				ok(t, y.look())
				ends[i][fmt.Sprint("on the way ", y.number, y.counted, y.failed)] = true
				return nil
			}
			x.End = func() error {
				_ = y.settled()
				ends[i][fmt.Sprint(y.number, y.counted, y.failed)] = true
				return nil
			}
			var err error
			explored[i], err = y.Explore(x)
			ok(t, err)
		}
		if !maps.Equal(ends[0], ends[1]) {
			t.Errorf("%+v: unpruned %v\npruned %v", c, slices.Sorted(maps.Keys(ends[0])), slices.Sorted(maps.Keys(ends[1])))
		}
		if explored[1].States >= explored[0].States {
			t.Errorf("%+v: pruned to %v from %v", c, explored[1], explored[0])
		}
		if c.failures == 1 && c.gateways == 1 {
			for _, want := range []string{"1 [1] [0]", "0 [0] [1]", "1 [0] [1]"} {
				if !ends[1][want] {
					t.Errorf("%+v: no end %q in %v", c, want, slices.Sorted(maps.Keys(ends[1])))
				}
			}
		}
		t.Logf("%+v: unpruned %v; pruned %v", c, explored[0], explored[1])
	}
}

// What an exploration cannot see through counts as part of everything: a call past HeldCalls, and a change of the service.
func TestFleetTakesWhatItCannotSeeAsPartOfEverything(t *testing.T) {
	for _, held := range []bool{true, false} {
		y := newTally(t, 2, "compare")
		if !held {
			y = newTally(t, 0, "")
			clock := NewVirtualClock()
			for range 2 {
				h, err := New(context.Background(), Config{Wasm: guest(t, "tally"), PluginConfig: []byte("put"), Clock: clock, HTTPCall: y.serve})
				ok(t, err)
				t.Cleanup(func() { ok(t, h.Close()) })
				y.Hosts = append(y.Hosts, h)
			}
			y.Calls = []*HeldCalls{NewHeldCalls("A", nil), NewHeldCalls("B", nil)} // of no host
		}
		x := Orders{Before: y.before, Events: []Event{y.requests(0, 1), y.requests(1, 1)}}
		explored, err := y.Explore(x)
		if want := map[bool]int{true: 4, false: 5}[held]; err != nil || explored.States != want {
			t.Errorf("held %v: %v, %v; want %d states", held, explored, err, want)
		}
		x.Events[1] = Event{Name: "the number changes", Do: func() { y.number = 7 }}
		if explored, err = y.Explore(x); err != nil || explored.States != 5 {
			t.Errorf("held %v, with a change of the service: %v, %v", held, explored, err)
		}
	}
}

func TestFleetLimitsAndMistakes(t *testing.T) {
	y := newTally(t, 2, "put")
	x := y.orders(1, 2, 0)
	x.Limit = 5
	if explored, err := y.Explore(x); !errors.Is(err, ErrUnexplored) || explored.Runs != 5 {
		t.Errorf("limit: %v, %v", explored, err)
	}
	x.Limit, x.Length = 0, 2
	if explored, err := y.Explore(x); err != nil || explored.Length != 2 || explored.Cut == 0 {
		t.Errorf("length: %v, %v", explored, err)
	}
	x.Length = 0
	x.End = func() error { panic("boom") }
	var failed *OrderError
	if _, err := y.Explore(x); !errors.As(err, &failed) || err.Error() != "panic: boom\n  the end" || !failed.AtEnd {
		t.Errorf("panic: %v", err)
	}
	y.Calls[0].Through() // it answers at once, until the fleet is set back
	if y.at != nil || y.Calls[0].fleet != nil {
		t.Error("an order still runs")
	}
	flaky := 0
	x = Orders{Events: []Event{{Name: "a", Ready: func() bool { flaky++; return flaky%2 == 1 }, Do: func() {}}, {Name: "b", Do: func() {}}}}
	if _, err := y.Explore(x); !errors.Is(err, ErrNotRepeatable) {
		t.Errorf("events that are ready at random: %v", err)
	}
	for _, events := range [][]Event{{{Name: "a", Do: func() {}}, {Name: "a", Do: func() {}}}, {{Name: "a"}}, {{Do: func() {}}}} {
		if _, err := y.Explore(Orders{Events: events}); !errors.Is(err, ErrConfig) {
			t.Errorf("%v: %v", events, err)
		}
	}
	for _, hosts := range [][]*Host{nil, {y.Hosts[0], newTally(t, 1, "put").Hosts[0]}} {
		if _, err := (&Fleet{Hosts: hosts}).Explore(Orders{}); !errors.Is(err, ErrConfig) {
			t.Errorf("%d hosts: %v", len(hosts), err)
		}
	}
	y.Hosts[0].Worker(0).NewStream()
	if _, err := y.Explore(Orders{}); !errors.Is(err, ErrSnapshot) {
		t.Errorf("a stream is open: %v", err)
	}
}

// A group shares the times of its first event.
func TestFleetGroups(t *testing.T) {
	y := newTally(t, 1, "put")
	var got []string
	order := ""
	do := func(name, group string, times int) Event {
		return Event{Name: name, Group: group, Times: times, Do: func() { order += name }}
	}
	_, err := y.Explore(Orders{
		Events: []Event{do("a", "g", 2), do("b", "g", 9), do("c", "", 0)},
		Before: func() { order = "" },
		End: func() error {
			got = append(got, order)
			return nil
		},
		Unpruned: true, Length: 2,
	})
	ok(t, err)
	if slices.Sort(got); fmt.Sprint(got) != "[ a aa ab ac b ba bb bc c ca cb]" {
		t.Errorf("%v", got)
	}
}

// Time passes for all hosts, each event at its own time; a tick is one host's own.
func TestFleetTime(t *testing.T) {
	clock := NewVirtualClock()
	f := &Fleet{}
	var heard []string
	for i, ms := range []int{300, 200} {
		h, err := New(context.Background(), Config{Wasm: guest(t, "probe"), Clock: clock, LogLevel: LogInfo,
			PluginConfig: fmt.Appendf(nil, "configure tickevery %d\ntick loglevel", ms),
			Log: func(e LogEntry) {
				if e.Worker == 0 && strings.Contains(e.Message, "loglevel") {
					heard = append(heard, fmt.Sprint(e.Time.Sub(VirtualEpoch).Milliseconds(), " ", i))
				}
			}})
		ok(t, err)
		t.Cleanup(func() { ok(t, h.Close()) })
		f.Hosts = append(f.Hosts, h)
	}
	f.Advance(650 * time.Millisecond)
	if got := strings.Join(heard, ", "); got != "200 1, 300 0, 400 1, 600 0, 600 1" {
		t.Errorf("heard %s", got)
	}
	heard = nil
	if !f.Tick(f.Hosts[0]) || !f.Tick(f.Hosts[0]) || clock.Now().Sub(VirtualEpoch) != 1200*time.Millisecond {
		t.Errorf("at %v", clock.Now())
	}
	f.Advance(0)
	if got := strings.Join(heard, ", "); got != "900 0, 1200 0, 1200 1" {
		t.Errorf("heard %s", got)
	}
	if f.Tick(newTally(t, 1, "put").Hosts[0]) {
		t.Error("a host without ticks has ticked")
	}
}

// Calls that are not to be held are answered at once.
func TestHeldCallsHoldSome(t *testing.T) {
	y := newTally(t, 1, "put")
	y.Calls[0].Holds = func(c *HTTPCall) bool { return c.Headers.Value(":method") == "PUT" }
	x := y.orders(1, 1, 0)
	x.Events = append(x.Events, Event{Name: "hears", Do: func() { y.Advance(0) }, Ready: func() bool { return len(y.streams[0]) > 0 && y.Calls[0].Len() == 0 }})
	explored, err := y.Explore(x)
	if err != nil || explored.Length != 4 || explored.States != 5 {
		t.Errorf("%v, %v", explored, err)
	}
}

// What times out of itself ends a call as well, and what is answered after that is not heard.
func TestHeldCallsTimeOut(t *testing.T) {
	y := newTally(t, 1, "put")
	y.before()
	y.requests(0, 1).Do()
	q := y.Calls[0]
	y.Advance(500 * time.Millisecond)
	if !q.IsOpen(0) || !q.CanExecute(0) || q.CanAnswer(0) || q.IsOpen(1) || q.CanExecute(1) {
		t.Error("after half a second")
	}
	y.Advance(500 * time.Millisecond)
	q.Execute(0)
	if q.IsOpen(0) || q.CanAnswer(0) || q.CanExecute(0) {
		t.Error("after a second")
	}
	if ok(t, y.look()); y.failed[0] != 1 || y.counted[0] != 0 || q.Len() != 1 || string(q.Call(0).Headers.Value(":path")) != "/count" {
		t.Errorf("%d failed, %d counted, %d calls", y.failed[0], y.counted[0], q.Len())
	}
	q.Fail(0, BrokenOff) // too late
	ok(t, y.look())
}
