package hostsim

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestFaultValidate(t *testing.T) {
	for _, tt := range []struct {
		fault Fault
		want  string // part of the error, or "" for a valid fault
	}{
		{Fault{At: "env.proxy_get_shared_data", Nth: 3, Answer: "CAS_MISMATCH"}, ""},
		{Fault{At: "wasi_snapshot_preview1.fd_write", Answer: "8"}, ""},
		{Fault{At: "proxy_on_tick", Worker: "main", Trap: true}, ""},
		{Fault{At: "malloc", Worker: "255", OutOfMemory: true}, ""},
		{Fault{At: "env.emscripten_notify_memory_growth", Delay: "1ms"}, ""},
		{Fault{}, "at is missing: a host function as module.name, such as"},
		{Fault{At: "env.proxy_get_sharde_data", Trap: true}, `there is no "env.proxy_get_sharde_data", the nearest name is env.proxy_get_shared_data`},
		{Fault{At: "proxy_on_http_response", Trap: true}, "the nearest name is proxy_on_http_call_response"},
		{Fault{At: "proxy_on_tick", Worker: "256", Trap: true}, `worker: "256" is none of any, main, canary, 0 to 255`},
		{Fault{At: "proxy_on_tick", Nth: -1, Trap: true}, "nth: -1 is negative, allowed are 1 and more"},
		{Fault{At: "proxy_on_tick", Every: -1, Trap: true}, "every: -1"},
		{Fault{At: "proxy_on_tick", Times: -1, Trap: true}, "times: -1"},
		{Fault{At: "proxy_on_tick"}, "proxy_on_tick does nothing: give answer, trap, out_of_memory or delay"},
		{Fault{At: "env.proxy_log", Trap: true, Answer: "OK"}, "env.proxy_log has more than one of answer, trap, out_of_memory"},
		{Fault{At: "env.proxy_log", Delay: "-1s"}, `delay: "-1s" is not a duration of 0 or more`},
		{Fault{At: "env.proxy_log", Delay: "soon"}, `delay: "soon"`},
		{Fault{At: "env.proxy_log", Answer: "ok"}, `answer: "ok" is neither a number nor a status of OK, NOT_FOUND, BAD_ARGUMENT,`},
		{Fault{At: "env.proxy_log", Answer: "4294967296"}, "neither a number"},
		{Fault{At: "proxy_on_tick", Answer: "OK"}, "proxy_on_tick gives no answer to the module"},
		{Fault{At: "wasi_unstable.proc_exit", Answer: "0"}, "wasi_unstable.proc_exit gives no answer"},
	} {
		err := tt.fault.Validate()
		switch {
		case tt.want == "" && err != nil:
			t.Errorf("%+v: %v", tt.fault, err)
		case tt.want == "":
		case !errors.Is(err, ErrFault) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n"):
			t.Errorf("%+v: %v, want one line with %q", tt.fault, err, tt.want)
		}
	}
}

// Every name that is offered is also taken.
func TestFaultPlaces(t *testing.T) {
	for _, place := range FaultPlaces() {
		f := Fault{At: place, Trap: true}
		ok(t, f.Validate())
	}
}

func TestFaultFromJSON(t *testing.T) {
	text := `{"at":"env.proxy_log","worker":"1","nth":2,"every":3,"times":4,"answer":"OK","delay":"5ms"}`
	var f Fault
	ok(t, json.Unmarshal([]byte(text), &f))
	if want := (Fault{At: "env.proxy_log", Worker: "1", Nth: 2, Every: 3, Times: 4, Answer: "OK", Delay: "5ms"}); f != want {
		t.Errorf("read %+v, want %+v", f, want)
	}
	back, err := json.Marshal(f)
	ok(t, err)
	if string(back) != text {
		t.Errorf("wrote %s, want %s", back, text)
	}
}
