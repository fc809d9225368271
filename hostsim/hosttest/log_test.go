package hosttest_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// brokenT is a test that fails, with what it prints.
type brokenT struct {
	testing.TB
	failed   bool
	printed  strings.Builder
	cleanups []func()
}

func (b *brokenT) Helper()                      {}
func (b *brokenT) Failed() bool                 { return b.failed }
func (b *brokenT) Cleanup(f func())             { b.cleanups = append(b.cleanups, f) }
func (b *brokenT) Logf(f string, args ...any)   { fmt.Fprintf(&b.printed, f+"\n", args...) }
func (b *brokenT) Errorf(f string, args ...any) { b.failed = true; b.Logf(f, args...) }
func (b *brokenT) Fatal(args ...any)            { b.Errorf("%s", fmt.Sprint(args...)); runtime.Goexit() }
func (b *brokenT) Fatalf(f string, args ...any) { b.Errorf(f, args...); runtime.Goexit() }

// failing runs a test that is expected to fail, and returns what it prints.
func failing(t *testing.T, f func(testing.TB)) string {
	t.Helper()
	b := &brokenT{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		f(b)
	}()
	<-done
	for _, f := range b.cleanups {
		f()
	}
	if !b.failed {
		t.Error("did not fail")
	}
	return b.printed.String()
}

// A start that fails shows why, in the plugin's own words.
func TestRefusedStartShowsTheLog(t *testing.T) {
	got := failing(t, func(f testing.TB) {
		hosttest.New(f, hosttest.Options{Wasm: probe, Config: "configure log 2 the reason\nconfigure return 0"})
	})
	if !strings.Contains(got, "returned false\n") || !strings.Contains(got, "canary info: the reason\n") {
		t.Error(got)
	}
}

func TestMistakesSayWhatIsThere(t *testing.T) {
	for want, mistake := range map[string]func(testing.TB){
		"request on worker 2: there are 2": func(f testing.TB) {
			hosttest.New(f, hosttest.Options{Wasm: probe, Workers: 2}).Do(2, hosttest.Request{})
		},
		"request on worker -1: there are 1": func(f testing.TB) {
			hosttest.New(f, hosttest.Options{Wasm: probe}).Do(-1, hosttest.Request{})
		},
		`unknown profile "nginx"; allowed: envoy-1.40, `: func(f testing.TB) {
			hosttest.New(f, hosttest.Options{Wasm: probe, Profile: "nginx"})
		},
	} {
		if got := failing(t, mistake); !strings.Contains(got, want) {
			t.Errorf("no %q in %s", want, got)
		}
	}
}
