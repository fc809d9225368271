package replay

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParseEvent(t *testing.T) {
	cases := []struct {
		text string
		want Event
	}{
		{"fail 3 at 10m for 2m", Event{Kind: EventFail, Replica: 3, At: 10 * time.Minute, For: 2 * time.Minute}},
		{"fail 0 at 0s", Event{Kind: EventFail}},
		{"  join   at 20m ", Event{Kind: EventJoin, At: 20 * time.Minute}},
		{"drain 5 at 5m", Event{Kind: EventDrain, Replica: 5, At: 5 * time.Minute}},
		{"undrain 5 at 1h30m", Event{Kind: EventUndrain, Replica: 5, At: 90 * time.Minute}},
		{"remove 1 at 1.5s", Event{Kind: EventRemove, Replica: 1, At: 1500 * time.Millisecond}},
		{"update at 1m pause 20s", Event{Kind: EventUpdate, At: time.Minute, For: 20 * time.Second}},
		{"update every 30m pause 20s", Event{Kind: EventUpdate, At: 30 * time.Minute, Every: 30 * time.Minute, For: 20 * time.Second}},
		{"etcd_down at 1m for 10s", Event{Kind: EventEtcdDown, At: time.Minute, For: 10 * time.Second}},
		{"etcd_hangs at 1m", Event{Kind: EventEtcdHangs, At: time.Minute}},
		{"update every 30m at 1m pause 0s", Event{Kind: EventUpdate, At: time.Minute, Every: 30 * time.Minute}},
	}
	for _, c := range cases {
		got, err := ParseEvent(c.text)
		if err != nil || got != c.want {
			t.Errorf("%q: %+v, %v; want %+v", c.text, got, err, c.want)
		}
		if again, err := ParseEvent(got.String()); err != nil || again != got {
			t.Errorf("%q is written %q, which reads %+v, %v", c.text, got, again, err)
		}
	}
}

func TestParseEventRefuses(t *testing.T) {
	cases := []struct{ text, says string }{
		{"", "empty"},
		{"explode 3 at 10m", `"explode"`},
		{"fail at 10m", `"at" is no replica's number`},
		{"fail", "number is missing"},
		{"fail -1 at 10m", "no replica's number"},
		{"fail 3", "the time is missing"},
		{"fail 3 at", `"at" has no time`},
		{"fail 3 at noon", `"noon" is no time`},
		{"fail 3 at -10m", "no time"},
		{"fail 3 at 1m at 2m", "said twice"},
		{"join 3 at 1m", `"3" is not expected`},
		{"join at 1m for 2m", `"for" is not expected`},
		{"etcd_down 1 at 1m", `"1" is not expected`},
		{"etcd_hangs for 1m", "the time is missing"},
		{"etcd_down every 1m for 1s", `"every" is not expected`},
		{"update at 1m", "how long it takes is missing"},
		{"update every 0s pause 1s", "no end"},
		{"update every 1us pause 1s", "1ms or more"},
	}
	for _, c := range cases {
		if _, err := ParseEvent(c.text); !errors.Is(err, ErrEvent) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v; want something about %q", c.text, err, c.says)
		}
	}
}

func FuzzParseEvent(f *testing.F) {
	f.Add("fail 3 at 10m for 2m")
	f.Add("update every 30m pause 20s")
	f.Fuzz(func(t *testing.T, text string) {
		e, err := ParseEvent(text)
		if err != nil {
			return
		}
		if again, err := ParseEvent(e.String()); err != nil || again != e {
			t.Errorf("%q is written %q, which reads %+v, %v", text, e, again, err)
		}
	})
}

func TestValidateSchedule(t *testing.T) {
	drain := Event{Kind: EventDrain, Replica: 2}
	if err := ValidateSchedule([]Event{drain}, 2); !errors.Is(err, ErrEvent) {
		t.Errorf("replica 2 of 0 to 1: %v", err)
	}
	if err := ValidateSchedule([]Event{drain, {Kind: EventJoin}}, 2); err != nil {
		t.Errorf("replica 2 that joins: %v", err)
	}
	for _, e := range []Event{{Kind: "x"}, {}, {Kind: EventJoin, Replica: 1}, {Kind: EventFail, At: -1}, {Kind: EventFail, Every: time.Second},
		{Kind: EventJoin, For: 1}} {
		if err := e.Validate(2); !errors.Is(err, ErrEvent) {
			t.Errorf("%+v: %v", e, err)
		}
	}
}

// Updates that repeat must leave engines time to work: nothing would ever end otherwise. What happens once may take long.
func TestUpdatesThatNeverEnd(t *testing.T) {
	every := func(d, pause time.Duration) Event { return Event{Kind: EventUpdate, Every: d, For: pause} }
	for _, c := range []struct {
		events []Event
		ok     bool
	}{
		{[]Event{every(time.Second, 999*time.Millisecond)}, true},
		{[]Event{every(time.Second, 400*time.Millisecond), every(time.Minute, 30*time.Second)}, true},
		{[]Event{{Kind: EventUpdate, For: time.Hour}}, true},
		{[]Event{every(time.Second, time.Second)}, false},
		{[]Event{every(time.Second, 700*time.Millisecond), every(time.Second, 700*time.Millisecond)}, false},
		{[]Event{{Kind: EventFail, For: maxClock + 1}}, false},
		{[]Event{{Kind: EventJoin, At: maxClock + 1}}, false},
	} {
		if err := ValidateSchedule(c.events, 2); errors.Is(err, ErrEvent) == c.ok {
			t.Errorf("%v: %v", c.events, err)
		}
	}
}
