package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// policySettings are those parts of the plugin's configuration that a policy in this process goes by. The plugin reads its
// configuration itself, and this program cannot import it: tests hold both together by schema and decisions. That a name or a
// value is wrong elsewhere is for the plugin to say.
type policySettings struct {
	Policy  string `json:"policy"`
	Session struct {
		IdleTimeout span `json:"idle_timeout"`
		MaxSessions int  `json:"max_sessions"`
	} `json:"session"`
	Body struct {
		MaxBytes int `json:"max_bytes"`
	} `json:"body"`
	Health struct {
		Failures    uint16          `json:"failures"`
		Cooldown    span            `json:"cooldown"`
		MaxCooldown span            `json:"max_cooldown"`
		Statuses    failureStatuses `json:"statuses"`
	} `json:"health"`
	ConsistentHash struct {
		LoadFactor float64 `json:"load_factor"`
	} `json:"consistent_hash"`
	CacheAware struct {
		Threshold   float64 `json:"cache_threshold"`
		BalanceAbs  uint32  `json:"balance_abs_threshold"`
		BalanceRel  float64 `json:"balance_rel_threshold"`
		MaxPrefixes int     `json:"max_prefixes"`
	} `json:"cache_aware"`
}

// span is a time as the configuration spells it, such as "90s".
type span time.Duration

func (s *span) UnmarshalJSON(text []byte) error {
	var spelt string
	err := json.Unmarshal(text, &spelt)
	d, wrong := time.ParseDuration(spelt)
	if err != nil || wrong != nil {
		return &json.UnmarshalTypeError{Value: string(text), Type: reflect.TypeFor[span]()}
	}
	*s = span(d)
	return nil
}

func (s span) milliseconds() int64 { return time.Duration(s).Milliseconds() }

// readPolicySettings reads a configuration over the plugin's defaults. A policy that is not empty takes the place of its own.
func readPolicySettings(config []byte, name string) (*policySettings, error) {
	var s policySettings
	s.Policy = policy.Names()[0]
	s.Session.IdleTimeout, s.Session.MaxSessions = span(2*time.Hour), 100_000
	s.Body.MaxBytes = 65536
	s.Health.Failures, s.Health.Cooldown, s.Health.MaxCooldown = 3, span(10*time.Second), span(5*time.Minute)
	for status := 500; status <= 599; status++ {
		s.Health.Statuses[status-firstFailure] = true
	}
	s.ConsistentHash.LoadFactor = 1.25
	s.CacheAware.Threshold, s.CacheAware.BalanceAbs, s.CacheAware.BalanceRel, s.CacheAware.MaxPrefixes = 0.3, 64, 1.5, 65536
	if len(config) > 0 {
		if err := json.Unmarshal(config, &s); err != nil {
			return nil, settingError(err)
		}
	}
	if name != "" {
		s.Policy = name
	}
	if s.Session.IdleTimeout.milliseconds() < 1 || s.Session.MaxSessions < 1 {
		return nil, fmt.Errorf("configuration: session.idle_timeout and session.max_sessions must be above 0")
	}
	return &s, nil
}

// settingError says where a configuration is wrong, what is there and what is allowed.
func settingError(err error) error {
	var wrong *json.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return fmt.Errorf("configuration: %w; allowed: a JSON object", err)
	}
	where := wrong.Field
	if where == "" {
		where = "(whole configuration)"
	}
	return fmt.Errorf("configuration: %s: %s is not what belongs there; allowed: %s", where, wrong.Value, allowedAs(wrong.Type))
}

// allowedAs says what a setting of that type may be.
func allowedAs(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[span]():
		return `a string such as "90s" or "2h"`
	case reflect.TypeFor[failureStatuses]():
		return `a list of numbers from 400 to 599, "4xx" and "5xx"`
	}
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Float64:
		return "a number"
	case reflect.Struct:
		return "an object"
	}
	return "a whole number, 0 or more"
}

// pool returns a pool without replicas.
func (s *policySettings) pool(seed uint64) (*policy.Pool, error) {
	chooser, err := policy.New(s.Policy, policy.Options{LoadFactor: s.ConsistentHash.LoadFactor, Threshold: s.CacheAware.Threshold,
		BalanceAbs: s.CacheAware.BalanceAbs, BalanceRel: s.CacheAware.BalanceRel})
	if err != nil {
		return nil, fmt.Errorf("policy %q: %w", s.Policy, err)
	}
	p := &policy.Pool{Policy: chooser, Timeout: s.Session.IdleTimeout.milliseconds(), MaxSessions: s.Session.MaxSessions, Seed: seed}
	if _, ok := chooser.(policy.CacheAware); ok {
		p.Prefixes = policy.NewPrefixIndex(s.CacheAware.MaxPrefixes)
	}
	return p, nil
}

func (s *policySettings) rule() (policy.HealthRule, error) {
	r := policy.HealthRule{Failures: s.Health.Failures, Cooldown: s.Health.Cooldown.milliseconds(), MaxCooldown: s.Health.MaxCooldown.milliseconds()}
	if err := r.Validate(); err != nil {
		return r, fmt.Errorf("configuration: health: %w", err)
	}
	return r, nil
}
