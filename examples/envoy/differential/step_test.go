package differential

import (
	"errors"
	"fmt"
	"testing"
)

func TestParseAct(t *testing.T) {
	for do, want := range map[string]string{
		"start":                           "{start    [] false  0s}",
		"client headers GET /a x=b%c end": "{client headers GET /a [[x b c]] true  0s}",
		"upstream headers 200":            "{upstream headers 200  [] false  0s}",
		"other trailers x=1 y=":           "{other trailers   [[x 1] [y ]] false  0s}",
		"client data a%b*2":               "{client data   [] false a ba b 0s}",
		"time 20ms":                       "{time    [] false  20ms}",
		"client reset":                    "{client reset   [] false  0s}",
	} {
		a, err := parseAct(do)
		got := fmt.Sprintf("{%s %s %s %s %v %v %s %s}", a.actor, a.verb, a.method, a.path, a.headers, a.end, a.data, a.span)
		if err != nil || got != want {
			t.Errorf("%s: %s, %v", do, got, err)
		}
	}
	for _, do := range []string{"client", "client headers GET", "client data a b", "client data a*b", "client jump", "upstream end now"} {
		if _, err := parseAct(do); !errors.Is(err, ErrFormat) {
			t.Errorf("%s: %v", do, err)
		}
	}
}
