package plugin

import (
	"slices"
	"time"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

// Config is a checked configuration. config.schema.json describes the JSON it is
// read from.
type Config struct {
	// Policy is the name of the policy of pools that name none, one of policyNames.
	Policy string
	// Pools holds at least one pool; their names are distinct.
	Pools          []PoolConfig
	Session        SessionConfig
	Target         TargetConfig
	Body           BodyConfig
	Release        ReleaseConfig
	Admin          AdminConfig
	Health         HealthConfig
	ConsistentHash ConsistentHashConfig
	CacheAware     CacheAwareConfig
	Discovery      DiscoveryConfig
	Agreement      AgreementConfig
	DebugHeaders   bool
	DecisionLog    DecisionLogConfig
}

// PoolConfig names the replicas of one upstream cluster.
type PoolConfig struct {
	// Name keys the pool's state and metrics: filters of one gateway process that
	// use one name share its sessions.
	Name string
	// Cluster is the gateway's cluster that the pool serves; with one pool it may
	// be empty and every request is the pool's.
	Cluster string
	// Policy is the name of the pool's own policy, or empty.
	Policy string
	// Members are the pool's replicas. If Discovered, the hosts of Cluster are, and
	// Members say more of those among them.
	Members    []policy.Member
	Discovered bool
}

// SessionConfig says what a session is and how long it lasts.
type SessionConfig struct {
	// Headers are asked in order; the first that is not empty names the session.
	Headers []string
	// Body are asked after them, in the request's JSON body.
	Body []bodyPath
	// ScopeHeaders are folded into the session's key.
	ScopeHeaders []string
	// IdleTimeout ends a session that had no turn for that long.
	IdleTimeout time.Duration
	// MaxSessions bounds the pins of a pool.
	MaxSessions int
	// MaxIDBytes bounds a session id's length.
	MaxIDBytes int
}

// BodyConfig is how requests wait for their bodies.
type BodyConfig struct {
	// MaxBytes bounds what is read of a body.
	MaxBytes int
	// Wait is how long a request waits for the next bytes of its body; for all that
	// it needs it waits waitsInAll times that.
	Wait time.Duration
}

// readsBodies says that a request may wait for its body.
func (c *Config) readsBodies() bool {
	const readsPrompts = "cache_aware"
	return len(c.Session.Body) > 0 || c.Policy == readsPrompts ||
		slices.ContainsFunc(c.Pools, func(p PoolConfig) bool { return p.Policy == readsPrompts })
}

// TargetConfig is how the choice reaches the gateway.
type TargetConfig struct {
	Header string
	// Base64 encodes the address, as stateful_session wants it. No spares then.
	Base64 bool
	// Spares is the number of fallback hosts after the first, 0..policy.MaxSpares.
	Spares int
}

// ReleaseConfig is the endpoint that ends sessions.
type ReleaseConfig struct {
	// Path is matched exactly; empty turns the endpoint off.
	Path         string
	SecretHeader string
	// Secret must come in SecretHeader; empty means none is asked for.
	Secret string
}

// AdminConfig is the endpoint for operators.
type AdminConfig struct {
	// Path is what its paths begin with; empty turns it off.
	Path         string
	SecretHeader string
	// Secret must come in SecretHeader; empty means none is asked for.
	Secret string
}

// HealthConfig says when a replica that fails is left alone.
type HealthConfig struct {
	// Failures in a row begin a cool-down, 0..maxFailures; 0 turns health off.
	Failures int
	// Cooldown is the first one; each failed trial doubles it up to MaxCooldown.
	Cooldown, MaxCooldown time.Duration
	// Statuses of answers count as failures.
	Statuses statuses
}

const maxFailures = 1000

func (h HealthConfig) rule() policy.HealthRule {
	return policy.HealthRule{
		Failures: uint16(h.Failures), Cooldown: h.Cooldown.Milliseconds(), MaxCooldown: h.MaxCooldown.Milliseconds(),
	}
}

// ConsistentHashConfig is what the policy consistent_hash is told.
type ConsistentHashConfig struct {
	// LoadFactor bounds a replica's open sessions to that many times its fair
	// share, 1..maxLoadFactor; 0 means no bound, and no pins.
	LoadFactor float64
}

// maxLoadFactor is far above any that bounds something.
const maxLoadFactor = 1000

// CacheAwareConfig is what the policy cache_aware is told.
type CacheAwareConfig struct {
	// Threshold is the share of its prompt, 0..1, above which a known prefix places
	// a session.
	Threshold float64
	// BalanceAbs, in open sessions, 0..maxBalanceAbs, and BalanceRel, a factor,
	// 0..maxBalanceRel, are the margin above the least loaded replica at which
	// a replica loses that preference: both must be exceeded.
	BalanceAbs int
	BalanceRel float64
	// MaxPrefixes bounds what a pool remembers, 1..maxPrefixes.
	MaxPrefixes int
}

const (
	maxBalanceAbs = 1_000_000
	maxBalanceRel = 1000
	maxPrefixes   = 10_000_000
)

// DiscoveryConfig says where the hosts of clusters are asked for.
type DiscoveryConfig struct {
	// AdminCluster is the gateway's cluster that leads to its own admin interface;
	// empty means that replicas are configured.
	AdminCluster string
	// Interval is the time between two questions.
	Interval time.Duration
}

// AgreementConfig says where several gateways agree on the homes of sessions.
type AgreementConfig struct {
	// Kind is agreementNone, for sessions of one gateway, or agreementEtcd.
	Kind string
	// Cluster is the gateway's cluster that leads to etcd's client port.
	Cluster string
	// Prefix is what all keys begin with, without a "/" at its end.
	Prefix string
	// Timeout is how long a request waits for etcd, and Poll the time between two questions for what has changed.
	Timeout, Poll time.Duration
	// Username and Password are those of a user of etcd; both empty means that none is needed.
	Username, Password string
}

const (
	agreementNone = "none"
	agreementEtcd = "etcd"
)

// DecisionLogConfig is the log of decisions.
type DecisionLogConfig struct {
	Enabled bool
	// Sample is the share of sessions that are logged, 0..1; all turns of a
	// session are logged or none. It is also the share of other requests.
	Sample float64
	// Level is debug, info or warn.
	Level string
}

// tickPeriod is the time between two rounds of periodic work: a second, or less
// where sessions expire, hosts are asked for, or requests wait for so short a time
// that a second is long.
func (c *Config) tickPeriod() time.Duration {
	period := c.Session.IdleTimeout / 8
	if c.readsBodies() {
		period = min(period, c.Body.Wait/2)
	}
	period = min(max(period, 10*time.Millisecond), time.Second)
	if c.Discovery.AdminCluster != "" {
		period = min(period, c.Discovery.Interval)
	}
	if c.Agreement.Kind != agreementNone {
		period = min(period, c.Agreement.Poll/2)
	}
	return period
}

// policyNames are the policies, the default first.
var policyNames = policy.Names()

// chooser returns the policy of that name, which is one of policyNames.
func (c *Config) chooser(name string) policy.Policy {
	chosen, err := policy.New(name, policy.Options{
		LoadFactor: c.ConsistentHash.LoadFactor,
		Threshold:  c.CacheAware.Threshold, BalanceAbs: uint32(c.CacheAware.BalanceAbs), BalanceRel: c.CacheAware.BalanceRel,
	})
	if err != nil { // no configuration that was parsed comes here
		return policy.StickyLeastLoaded{}
	}
	return chosen
}

const (
	defaultPolicy = "sticky_least_loaded"
	defaultPool   = "default"
)

func defaultConfig() Config {
	return Config{
		Policy: defaultPolicy,
		Session: SessionConfig{
			Headers:     []string{"x-session-id"},
			IdleTimeout: 2 * time.Hour,
			MaxSessions: 100_000,
			MaxIDBytes:  256,
		},
		Target:         TargetConfig{Header: "x-gateway-destination-endpoint", Spares: 2},
		Body:           BodyConfig{MaxBytes: 65536, Wait: time.Second},
		Release:        ReleaseConfig{Path: "/finish_session", SecretHeader: "x-pinwheel-secret"},
		Health:         HealthConfig{Failures: 3, Cooldown: 10 * time.Second, MaxCooldown: 5 * time.Minute, Statuses: statuses{}.with(500, 599)},
		ConsistentHash: ConsistentHashConfig{LoadFactor: 1.25},
		CacheAware:     CacheAwareConfig{Threshold: 0.3, BalanceAbs: 64, BalanceRel: 1.5, MaxPrefixes: 65536},
		Discovery:      DiscoveryConfig{Interval: 2 * time.Second},
		Agreement:      AgreementConfig{Kind: agreementNone, Prefix: "/pinwheel", Timeout: 50 * time.Millisecond, Poll: time.Second},
		DecisionLog:    DecisionLogConfig{Sample: 1, Level: "info"},
	}
}

// defaultAdmin is the endpoint where configuration turns it on and says no more.
var defaultAdmin = AdminConfig{Path: "/pinwheel", SecretHeader: "x-pinwheel-secret"}

// presets are lists of session headers that agents and trainers send today.
var presets = map[string][]string{
	"agents": {
		"x-session-id", "x-claude-code-session-id", "x-session-affinity", "session-id",
		"x-litellm-session-id", "x-dynamo-session-id", "x-smg-routing-key",
	},
}
