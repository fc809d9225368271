package policytest

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Options are the settings that scripts vary.
type Options struct {
	Policy      string        // as configuration names it
	Timeout     time.Duration // idle timeout
	MaxSessions int           // bound on recorded sessions
	MaxIDBytes  int           // longest id that is recorded

	LoadFactor float64 // bound of consistent_hash; 0 for none

	// The thresholds of cache_aware, and the bound on its index.
	CacheThreshold, BalanceRel float64
	BalanceAbs, MaxPrefixes    int

	// Failures in a row begin a cool-down of Cooldown, which doubles up to
	// MaxCooldown.
	Failures              int
	Cooldown, MaxCooldown time.Duration
}

// defaults are the options of a script that sets none.
func defaults() Options {
	return Options{
		Policy: "sticky_least_loaded", Timeout: 2 * time.Hour, MaxSessions: 100000, MaxIDBytes: 256,
		LoadFactor: 1.25, CacheThreshold: 0.3, BalanceAbs: 64, BalanceRel: 1.5, MaxPrefixes: 65536,
		Failures: 3, Cooldown: 10 * time.Second, MaxCooldown: 5 * time.Minute,
	}
}

// set reads one KEY=VALUE.
func (o *Options) set(arg string) (err error) {
	key, value, _ := strings.Cut(arg, "=")
	durations := map[string]*time.Duration{
		"timeout": &o.Timeout, "cooldown": &o.Cooldown, "max_cooldown": &o.MaxCooldown,
	}
	counts := map[string]*int{
		"max_sessions": &o.MaxSessions, "max_id_bytes": &o.MaxIDBytes, "balance_abs": &o.BalanceAbs,
		"max_prefixes": &o.MaxPrefixes, "failures": &o.Failures,
	}
	numbers := map[string]*float64{
		"load_factor": &o.LoadFactor, "cache_threshold": &o.CacheThreshold, "balance_rel": &o.BalanceRel,
	}
	if at := durations[key]; at != nil {
		*at, err = time.ParseDuration(value)
	} else if at := counts[key]; at != nil {
		*at, err = strconv.Atoi(value)
	} else if at := numbers[key]; at != nil {
		*at, err = strconv.ParseFloat(value, 64)
	} else {
		err = fmt.Errorf("unknown option %s", key)
	}
	return err
}
