package plugin

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pinwheel-proxy/pinwheel/plugin/json"
	"github.com/pinwheel-proxy/pinwheel/policy"
)

// ParseConfig reads the plugin's configuration. The error is one line that names
// the JSON path, what is wrong there and what is allowed. Pure.
func ParseConfig(text []byte) (*Config, error) {
	root, err := parseJSON(text)
	if err != nil {
		return nil, err
	}
	c := defaultConfig()
	d := &decoder{}
	var members []policy.Member
	preset := ""
	hasReplicas, hasPools, discovered := root.Get("replicas").Exists(), root.Get("pools").Exists(), root.Get("discovery").Exists()
	d.object("", root, fields{
		{"policy", func(p string, v json.Result) { d.oneOf(&c.Policy, p, v, policyNames...) }},
		{"replicas", func(p string, v json.Result) { members = d.members(p, v) }},
		{"pools", func(p string, v json.Result) { c.Pools = d.pools(p, v, !discovered) }},
		{"session", func(p string, v json.Result) { d.session(&c.Session, &preset, p, v) }},
		{"target", func(p string, v json.Result) { d.target(&c.Target, p, v) }},
		{"body", func(p string, v json.Result) { d.body(&c.Body, p, v) }},
		{"release", func(p string, v json.Result) { d.release(&c.Release, p, v) }},
		{"admin", func(p string, v json.Result) { d.admin(&c.Admin, p, v) }},
		{"health", func(p string, v json.Result) { d.health(&c.Health, p, v) }},
		{"consistent_hash", func(p string, v json.Result) { d.consistentHash(&c.ConsistentHash, p, v) }},
		{"cache_aware", func(p string, v json.Result) { d.cacheAware(&c.CacheAware, p, v) }},
		{"discovery", func(p string, v json.Result) { d.discovery(&c.Discovery, p, v) }},
		{"agreement", func(p string, v json.Result) { d.agreement(&c.Agreement, p, v) }},
		{"debug_headers", func(p string, v json.Result) { d.boolean(&c.DebugHeaders, p, v) }},
		{"decision_log", func(p string, v json.Result) { d.decisionLog(&c.DecisionLog, p, v) }},
	})
	if d.err != nil {
		return nil, d.err
	}
	switch {
	case hasReplicas && hasPools:
		return nil, configError("pools", "given beside \"replicas\"", "one of the two: \"replicas\" is short for one pool")
	case !hasReplicas && !hasPools && !discovered:
		return nil, configError("replicas", "missing", "a list of addresses such as [\"10.0.0.1:8000\"], or \"pools\", or \"discovery\"")
	case !hasPools:
		c.Pools = []PoolConfig{{Name: defaultPool, Members: members}}
	}
	for i := range c.Pools {
		c.Pools[i].Discovered = discovered
	}
	d.distinctHeaders(&c)
	d.distinctPaths(&c)
	if d.err != nil {
		return nil, d.err
	}
	return &c, nil
}

// distinctHeaders refuses a target header that means something else too: writing
// the choice there would overwrite the session id, or break the request.
func (d *decoder) distinctHeaders(c *Config) {
	taken := append([]string{"host", "content-length", "transfer-encoding", "connection", c.Release.SecretHeader, c.Admin.SecretHeader}, c.Session.Headers...)
	if slices.Contains(append(taken, c.Session.ScopeHeaders...), c.Target.Header) {
		d.fail("target.header", quote(c.Target.Header)+" has another meaning", "a header that nothing else reads")
	}
}

func (d *decoder) pools(path string, v json.Result, needReplicas bool) (pools []PoolConfig) {
	names, clusters := map[string]bool{}, map[string]bool{}
	d.array(path, v, func(path string, v json.Result) {
		var pc PoolConfig
		d.object(path, v, fields{
			{"name", func(p string, v json.Result) { d.name(&pc.Name, p, v) }},
			{"cluster", func(p string, v json.Result) { d.text(&pc.Cluster, p, v) }},
			{"policy", func(p string, v json.Result) { d.oneOf(&pc.Policy, p, v, policyNames...) }},
			{"replicas", func(p string, v json.Result) { pc.Members = d.members(p, v) }},
		})
		switch {
		case pc.Name == "":
			d.fail(path+".name", "missing", "a name of letters, digits, \"-\" and \"_\"")
		case needReplicas && !v.Get("replicas").Exists():
			d.fail(path+".replicas", "missing", "a list of addresses such as [\"10.0.0.1:8000\"]")
		case names[pc.Name]:
			d.fail(path+".name", quote(pc.Name)+" is the name of another pool", "distinct names")
		case pc.Cluster != "" && clusters[pc.Cluster]:
			d.fail(path+".cluster", quote(pc.Cluster)+" belongs to another pool", "one pool for each cluster")
		}
		names[pc.Name], clusters[pc.Cluster] = true, true
		pools = append(pools, pc)
	})
	if len(pools) == 0 {
		d.fail(path, "empty", "one pool or more")
	}
	for i, pc := range pools {
		if len(pools) > 1 && pc.Cluster == "" {
			d.fail(element(path, i)+".cluster", "missing", "the name of the cluster that the pool serves (needed with several pools)")
		}
	}
	return pools
}

// maxReplicas bounds the record that every placement reads.
const maxReplicas = 1024

func (d *decoder) members(path string, v json.Result) (members []policy.Member) {
	seen := map[string]bool{}
	d.array(path, v, func(path string, v json.Result) {
		m := policy.Member{Weight: 1}
		if v.IsObject() {
			d.member(&m, path, v)
		} else {
			d.address(&m.Address, path, v)
		}
		if m.Address != "" && seen[m.Address] {
			d.fail(path, quote(m.Address)+" is listed twice", "each address once")
		}
		seen[m.Address] = true
		members = append(members, m)
	})
	if len(members) > maxReplicas {
		d.fail(path, strconv.Itoa(len(members))+" replicas", "at most "+strconv.Itoa(maxReplicas))
	}
	return members
}

func (d *decoder) member(m *policy.Member, path string, v json.Result) {
	weight, state := 1, policy.Active.String()
	d.object(path, v, fields{
		{"address", func(p string, v json.Result) { d.address(&m.Address, p, v) }},
		{"weight", func(p string, v json.Result) { d.integer(&weight, p, v, 1, 65535) }},
		{"state", func(p string, v json.Result) { d.oneOf(&state, p, v, memberStates...) }},
	})
	if m.Address == "" {
		d.fail(path+".address", "missing", addressAllowed)
	}
	m.Weight = uint32(weight)
	for s := policy.Active; s < policy.Removed; s++ {
		if s.String() == state {
			m.State = s
		}
	}
}

var memberStates = []string{policy.Active.String(), policy.Draining.String(), policy.Unhealthy.String()}

const addressAllowed = "IP:PORT or [IPv6]:PORT; the gateway matches resolved addresses, so host names do not work here"

func (d *decoder) address(dst *string, path string, v json.Result) {
	var s string
	if d.text(&s, path, v); s == "" {
		d.fail(path, "empty", addressAllowed)
		return
	}
	a, ok := canonicalAddress(s)
	if !ok {
		d.fail(path, quote(s)+" is not an address", addressAllowed)
		return
	}
	*dst = a
}

func (d *decoder) session(c *SessionConfig, preset *string, path string, v json.Result) {
	headers := []string(nil)
	d.object(path, v, fields{
		{"headers", func(p string, v json.Result) { headers = d.headerNames(p, v, 16) }},
		{"body", func(p string, v json.Result) { c.Body = d.bodyPaths(p, v) }},
		{"preset", func(p string, v json.Result) { d.oneOf(preset, p, v, "agents") }},
		{"scope_headers", func(p string, v json.Result) { c.ScopeHeaders = d.headerNames(p, v, 8) }},
		{"idle_timeout", func(p string, v json.Result) {
			d.duration(&c.IdleTimeout, p, v, 100*time.Millisecond, 365*24*time.Hour)
		}},
		{"max_sessions", func(p string, v json.Result) { d.integer(&c.MaxSessions, p, v, 1, 10_000_000) }},
		{"max_id_bytes", func(p string, v json.Result) { d.integer(&c.MaxIDBytes, p, v, 1, 65536) }},
	})
	if headers == nil && *preset == "" {
		return
	}
	c.Headers = nil
	seen := map[string]bool{}
	for _, h := range append(headers, presets[*preset]...) {
		if !seen[h] {
			c.Headers = append(c.Headers, h)
		}
		seen[h] = true
	}
	if len(c.Headers) == 0 {
		d.fail(path+".headers", "empty", "one header name or more")
	}
}

func (d *decoder) bodyPaths(path string, v json.Result) (paths []bodyPath) {
	d.array(path, v, func(path string, v json.Result) {
		var s string
		d.text(&s, path, v)
		parsed, ok := parseBodyPath(s)
		if !ok {
			d.fail(path, quote(s)+" is no path", pathAllowed)
		}
		paths = append(paths, parsed)
	})
	if len(paths) > maxBodyPaths {
		d.fail(path, strconv.Itoa(len(paths))+" paths", "at most "+strconv.Itoa(maxBodyPaths))
	}
	return paths
}

func (d *decoder) body(c *BodyConfig, path string, v json.Result) {
	d.object(path, v, fields{
		{"max_bytes", func(p string, v json.Result) { d.integer(&c.MaxBytes, p, v, 1024, 1<<20) }},
		{"wait", func(p string, v json.Result) { d.duration(&c.Wait, p, v, 20*time.Millisecond, time.Minute) }},
	})
}

func (d *decoder) target(c *TargetConfig, path string, v json.Result) {
	encoding := "plain"
	d.object(path, v, fields{
		{"header", func(p string, v json.Result) { d.headerName(&c.Header, p, v) }},
		{"encoding", func(p string, v json.Result) { d.oneOf(&encoding, p, v, "plain", "base64") }},
		{"spares", func(p string, v json.Result) { d.integer(&c.Spares, p, v, 0, policy.MaxSpares) }},
	})
	if c.Base64 = encoding == "base64"; c.Base64 {
		if v.Get("spares").Int() > 0 {
			d.fail(path+".spares", "given with base64", "0: stateful_session takes one address")
		}
		c.Spares = 0
	}
}

func (d *decoder) release(c *ReleaseConfig, path string, v json.Result) {
	d.object(path, v, fields{
		{"path", func(p string, v json.Result) {
			if d.text(&c.Path, p, v); c.Path != "" && (c.Path[0] != '/' || strings.ContainsAny(c.Path, "?#")) {
				d.fail(p, quote(c.Path)+" is not a path", "a path that starts with \"/\" and has no query, or \"\" to turn releases off")
			}
		}},
		{"secret_header", func(p string, v json.Result) { d.headerName(&c.SecretHeader, p, v) }},
		{"secret", func(p string, v json.Result) { d.text(&c.Secret, p, v) }},
	})
}

func (d *decoder) admin(c *AdminConfig, path string, v json.Result) {
	*c = defaultAdmin
	d.object(path, v, fields{
		{"path", func(p string, v json.Result) {
			if d.text(&c.Path, p, v); len(c.Path) < 2 || c.Path[0] != '/' || c.Path[len(c.Path)-1] == '/' || strings.ContainsAny(c.Path, "?#") {
				d.fail(p, quote(c.Path)+" is no path for it", "a path such as \"/pinwheel\", with no \"/\" at its end and no query")
			}
		}},
		{"secret_header", func(p string, v json.Result) { d.headerName(&c.SecretHeader, p, v) }},
		{"secret", func(p string, v json.Result) { d.text(&c.Secret, p, v) }},
	})
}

// distinctPaths refuses a release path under the admin path: one of the two would
// never be asked.
func (d *decoder) distinctPaths(c *Config) {
	if c.Admin.Path != "" && strings.HasPrefix(c.Release.Path+"/", c.Admin.Path+"/") {
		d.fail("admin.path", quote(c.Admin.Path)+" is where releases go, to "+c.Release.Path, "a path of its own")
	}
}

func (d *decoder) health(c *HealthConfig, path string, v json.Result) {
	d.object(path, v, fields{
		{"failures", func(p string, v json.Result) { d.integer(&c.Failures, p, v, 0, maxFailures) }},
		{"cooldown", func(p string, v json.Result) {
			d.duration(&c.Cooldown, p, v, 100*time.Millisecond, 24*time.Hour)
		}},
		{"max_cooldown", func(p string, v json.Result) {
			d.duration(&c.MaxCooldown, p, v, 100*time.Millisecond, 24*time.Hour)
		}},
		{"statuses", func(p string, v json.Result) { d.statuses(&c.Statuses, p, v) }},
	})
	if c.MaxCooldown < c.Cooldown {
		d.fail(path+".max_cooldown", c.MaxCooldown.String()+" is less than the cooldown", c.Cooldown.String()+" or more")
	}
}

func (d *decoder) consistentHash(c *ConsistentHashConfig, path string, v json.Result) {
	d.object(path, v, fields{
		{"load_factor", func(p string, v json.Result) {
			if v.Type != json.Number || v.Num != 0 && (v.Num < 1 || v.Num > maxLoadFactor) {
				d.fail(p, outOfRange(v), "0 for no bound, or a number from 1 to "+strconv.Itoa(maxLoadFactor))
			}
			c.LoadFactor = v.Num
		}},
	})
}

func (d *decoder) cacheAware(c *CacheAwareConfig, path string, v json.Result) {
	d.object(path, v, fields{
		{"cache_threshold", func(p string, v json.Result) { d.number(&c.Threshold, p, v, 1) }},
		{"balance_abs_threshold", func(p string, v json.Result) { d.integer(&c.BalanceAbs, p, v, 0, maxBalanceAbs) }},
		{"balance_rel_threshold", func(p string, v json.Result) { d.number(&c.BalanceRel, p, v, maxBalanceRel) }},
		{"max_prefixes", func(p string, v json.Result) { d.integer(&c.MaxPrefixes, p, v, 1, maxPrefixes) }},
	})
}

func (d *decoder) discovery(c *DiscoveryConfig, path string, v json.Result) {
	d.object(path, v, fields{
		{"admin_cluster", func(p string, v json.Result) { d.text(&c.AdminCluster, p, v) }},
		{"interval", func(p string, v json.Result) { d.duration(&c.Interval, p, v, 100*time.Millisecond, time.Hour) }},
	})
	if c.AdminCluster == "" {
		d.fail(path+".admin_cluster", "missing", "the name of the gateway's cluster that leads to its own admin interface")
	}
}

func (d *decoder) agreement(c *AgreementConfig, path string, v json.Result) {
	d.object(path, v, fields{
		{"kind", func(p string, v json.Result) { d.oneOf(&c.Kind, p, v, agreementNone, agreementEtcd) }},
		{"cluster", func(p string, v json.Result) { d.text(&c.Cluster, p, v) }},
		{"prefix", func(p string, v json.Result) {
			if d.text(&c.Prefix, p, v); len(c.Prefix) < 2 || c.Prefix[0] != '/' || c.Prefix[len(c.Prefix)-1] == '/' {
				d.fail(p, quote(c.Prefix)+" is no prefix for keys", "one such as \"/pinwheel\", with no \"/\" at its end")
			}
		}},
		{"timeout", func(p string, v json.Result) { d.duration(&c.Timeout, p, v, 10*time.Millisecond, 5*time.Second) }},
		{"poll", func(p string, v json.Result) { d.duration(&c.Poll, p, v, 100*time.Millisecond, 10*time.Second) }},
		{"username", func(p string, v json.Result) { d.text(&c.Username, p, v) }},
		{"password", func(p string, v json.Result) { d.text(&c.Password, p, v) }},
	})
	switch {
	case c.Kind == agreementNone:
	case c.Cluster == "":
		d.fail(path+".cluster", "missing", "the name of the gateway's cluster that leads to etcd's client port")
	case c.Username == "" && c.Password != "":
		d.fail(path+".username", "missing beside a password", "the name of etcd's user")
	}
}

func (d *decoder) decisionLog(c *DecisionLogConfig, path string, v json.Result) {
	d.object(path, v, fields{
		{"enabled", func(p string, v json.Result) { d.boolean(&c.Enabled, p, v) }},
		{"sample", func(p string, v json.Result) { d.number(&c.Sample, p, v, 1) }},
		{"level", func(p string, v json.Result) { d.oneOf(&c.Level, p, v, "debug", "info", "warn") }},
	})
}
