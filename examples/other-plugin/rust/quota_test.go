//go:build rust

// Package quota tests a plugin written in Rust.
package quota

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

var quota = hosttest.Options{
	Wasm:    "target/wasm32-wasip1/release/quota.wasm",
	Build:   "cargo build --release --target wasm32-wasip1",
	Config:  "3",
	Workers: 2,
}

// Time stands still until the test moves it.
func TestQuotaOfAMinute(t *testing.T) {
	h := hosttest.New(t, quota)
	for i, want := range []int{200, 200, 200, 429, 429} {
		if got := h.Do(i%2, hosttest.Request{}); got.Status != want {
			t.Errorf("request %d: %d, want %d", i, got.Status, want)
		}
	}
	h.Advance(time.Minute)
	if got := h.Do(0, hosttest.Request{}); got.Status != 200 {
		t.Errorf("a minute later: %d", got.Status)
	}
}

// Two workers that count at once let pass no request too many, in whatever order their host calls come.
func TestWorkersShareTheQuota(t *testing.T) {
	one := quota
	one.Config = "1"
	h := hosttest.New(t, one)
	passed := 0
	request := func(w *hostsim.Worker) {
		if h.Do(w.Index(), hosttest.Request{}).Status == 200 {
			passed++
		}
	}
	explored, err := h.Explore(hostsim.Exploration{
		Scenario: hostsim.Scenario{Workers: []func(*hostsim.Worker){request, request}},
		Before:   func() { passed = 0 },
		Check: func(hostsim.Played) error {
			if passed != 1 {
				return fmt.Errorf("%d of 2 requests passed, the quota is 1", passed)
			}
			return nil
		},
	})
	if err != nil || explored.Schedules < 2 {
		t.Error(explored, err)
	}
}

// The plugin says what is wrong with its configuration, and does not start.
func TestBadConfiguration(t *testing.T) {
	bad := quota
	bad.Config = "many"
	if _, err := hosttest.Start(t, bad); !errors.Is(err, hostsim.ErrRefused) {
		t.Errorf("error %v", err)
	}
}
