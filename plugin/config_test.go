package plugin

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/pinwheel-proxy/pinwheel/policy"
)

func TestParseConfigDefaults(t *testing.T) {
	c, err := ParseConfig([]byte(`{"replicas":["10.0.0.1:8000",{"address":"[FD00::2]:8000","weight":2,"state":"draining"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	want := defaultConfig()
	want.Pools = []PoolConfig{{Name: "default", Members: []policy.Member{
		{Address: "10.0.0.1:8000", Weight: 1},
		{Address: "[fd00::2]:8000", Weight: 2, State: policy.Draining},
	}}}
	if !reflect.DeepEqual(*c, want) {
		t.Errorf("got  %+v\nwant %+v", *c, want)
	}
	if c.Session.IdleTimeout != 2*time.Hour || c.Session.MaxSessions != 100_000 || c.Target.Spares != 2 {
		t.Errorf("documented defaults changed: %+v", c)
	}
}

func TestParseConfigKeepsWhatIsGiven(t *testing.T) {
	c, err := ParseConfig([]byte(`{
		"pools": [
			{"name": "a", "cluster": "vllm-a", "replicas": ["10.0.0.1:1"]},
			{"name": "b", "cluster": "vllm-b", "policy": "random", "replicas": []}],
		"policy": "consistent_hash", "consistent_hash": {"load_factor": 0},
		"cache_aware": {"cache_threshold": 0.5, "balance_abs_threshold": 0, "balance_rel_threshold": 1, "max_prefixes": 9},
		"health": {"failures": 0, "cooldown": "1s", "max_cooldown": "1m", "statuses": [429, "5xx"]},
		"body": {"max_bytes": 2048, "wait": "50ms"},
		"session": {"headers": ["X-My-Session"], "body": ["metadata.session_id", "a\\.b.1"], "preset": "agents", "scope_headers": ["X-Tenant"],
			"idle_timeout": "90s", "max_sessions": 7, "max_id_bytes": 8},
		"target": {"header": "X-Host", "encoding": "base64"},
		"release": {"path": "", "secret": "s"},
		"admin": {"path": "/ops/pw", "secret_header": "X-Ops", "secret": "t"},
		"debug_headers": true,
		"decision_log": {"enabled": true, "sample": 0.25, "level": "warn"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if c.Policy != "consistent_hash" || c.Pools[0].Policy != "" || c.Pools[1].Policy != "random" || c.ConsistentHash.LoadFactor != 0 {
		t.Errorf("policies: %+v", c)
	}
	if c.CacheAware != (CacheAwareConfig{0.5, 0, 1, 9}) {
		t.Errorf("cache_aware: %+v", c.CacheAware)
	}
	if c.Health != (HealthConfig{0, time.Second, time.Minute, statuses{}.with(429, 429).with(500, 599)}) {
		t.Errorf("health: %+v", c.Health)
	}
	if len(c.Pools) != 2 || c.Pools[1].Cluster != "vllm-b" || len(c.Pools[1].Members) != 0 {
		t.Errorf("pools: %+v", c.Pools)
	}
	s := c.Session
	if s.Headers[0] != "x-my-session" || !slices.Contains(s.Headers, "x-litellm-session-id") ||
		s.ScopeHeaders[0] != "x-tenant" || s.IdleTimeout != 90*time.Second || s.MaxSessions != 7 || s.MaxIDBytes != 8 {
		t.Errorf("session: %+v", s)
	}
	want := []bodyPath{{{"metadata", -1}, {"session_id", -1}}, {{"a.b", -1}, {"1", 1}}}
	if !reflect.DeepEqual(s.Body, want) || c.Body != (BodyConfig{2048, 50 * time.Millisecond}) || c.tickPeriod() != 25*time.Millisecond {
		t.Errorf("bodies: %+v, %+v, tick %v", s.Body, c.Body, c.tickPeriod())
	}
	if c.Target != (TargetConfig{Header: "x-host", Base64: true}) {
		t.Errorf("target: %+v", c.Target)
	}
	if c.Admin != (AdminConfig{"/ops/pw", "x-ops", "t"}) {
		t.Errorf("admin: %+v", c.Admin)
	}
	if c.Release.Path != "" || c.Release.Secret != "s" || !c.DebugHeaders || c.DecisionLog != (DecisionLogConfig{true, 0.25, "warn"}) {
		t.Errorf("rest: %+v", c)
	}
}

// refused holds configurations that must be refused and what the line must say.
var refused = []struct{ config, says string }{
	{``, "empty"},
	{`   `, "empty"},
	{`[]`, "(whole configuration): a list where an object belongs"},
	{"{\n  \"replicas\": [\"10.0.0.1:1\",]\n}", "line 2, column 29"},
	{`{}`, `replicas: missing; allowed: a list of addresses such as ["10.0.0.1:8000"], or "pools"`},
	{`{"replicas":["10.0.0.1:1"],"sesion":{}}`, `sesion: unknown key; did you mean "session"?; allowed: policy, replicas,`},
	{`{"replicas":["10.0.0.1:1"],"session":{"idle_timout":"1h"}}`, `session.idle_timout: unknown key; did you mean "idle_timeout"?`},
	{`{"replicas":["10.0.0.1:1"],"session":{"idle_timeout":7200}}`, `session.idle_timeout: 7200 is no duration in range; allowed: a string such as "90s"`},
	{`{"replicas":["10.0.0.1:1"],"session":{"idle_timeout":"1ms"}}`, "from 100ms to 8760h0m0s"},
	{`{"replicas":["10.0.0.1:1"],"session":{"max_sessions":0}}`, "session.max_sessions: 0 is out of range; allowed: a whole number from 1 to 10000000"},
	{`{"replicas":["10.0.0.1:1"],"session":{"max_sessions":1.5}}`, "1.5 is out of range"},
	{`{"replicas":["10.0.0.1:1"],"session":{"max_id_bytes":"8"}}`, "session.max_id_bytes: a string where a number belongs; allowed: a whole number from 1 to 65536"},
	{`{"replicas":["10.0.0.1:1"],"session":{"headers":[]}}`, "session.headers: empty"},
	{`{"replicas":["10.0.0.1:1"],"session":{"headers":["x y"]}}`, `session.headers[0]: "x y" is no header name`},
	{`{"replicas":["10.0.0.1:1"],"session":{"body":"user"}}`, "session.body: a string where a list belongs"},
	{`{"replicas":["10.0.0.1:1"],"session":{"body":["user","a..b"]}}`, `session.body[1]: "a..b" is no path; allowed: keys and list positions joined by dots`},
	{`{"replicas":["10.0.0.1:1"],"session":{"body":["messages.#.id"]}}`, `session.body[0]: "messages.#.id" is no path`},
	{`{"replicas":["10.0.0.1:1"],"session":{"body":["a.b.c.d.e.f.g.h.i"]}}`, "at most 8 of them"},
	{`{"replicas":["10.0.0.1:1"],"session":{"body":["1","2","3","4","5","6","7","8","9"]}}`, "session.body: 9 paths; allowed: at most 8"},
	{`{"replicas":["10.0.0.1:1"],"body":{"max_bytes":1023}}`, "body.max_bytes: 1023 is out of range; allowed: a whole number from 1024 to 1048576"},
	{`{"replicas":["10.0.0.1:1"],"body":{"wait":"10ms"}}`, `body.wait: "10ms" is no duration in range`},
	{`{"replicas":["10.0.0.1:1"],"body":{"bytes":1}}`, `body.bytes: unknown key; did you mean "max_bytes"?`},
	{`{"replicas":["10.0.0.1:1"],"session":null}`, "session: null where an object belongs"},
	{`{"replicas":["vllm-0:8000"]}`, `replicas[0]: "vllm-0:8000" is not an address; allowed: IP:PORT or [IPv6]:PORT`},
	{`{"replicas":["10.0.0.1"]}`, `replicas[0]: "10.0.0.1" is not an address`},
	{`{"replicas":["10.0.0.1:0"]}`, "is not an address"},
	{`{"replicas":["[fe80::1%eth0]:80"]}`, "is not an address"},
	{`{"replicas":["10.0.0.1:1","10.0.0.2:1","10.0.0.1:1"]}`, `replicas[2]: "10.0.0.1:1" is listed twice`},
	{`{"replicas":[{"weight":1}]}`, "replicas[0].address: missing"},
	{`{"replicas":[{"address":"10.0.0.1:1","weight":0}]}`, "replicas[0].weight: 0 is out of range"},
	{`{"replicas":[{"address":"10.0.0.1:1","state":"drain"}]}`, `did you mean "draining"?; allowed: active, draining, unhealthy`},
	{`{"replicas":"10.0.0.1:1"}`, "replicas: a string where a list belongs"},
	{`{"replicas":["10.0.0.1:1"],"replicas":["10.0.0.1:1"]}`, "replicas: given twice"},
	{`{"replicas":["10.0.0.1:1"],"pools":[{"name":"a","replicas":[]}]}`, "pools: given beside"},
	{`{"pools":[]}`, "pools: empty"},
	{`{"pools":[{"replicas":[]}]}`, "pools[0].name: missing"},
	{`{"pools":[{"name":"a"}]}`, "pools[0].replicas: missing"},
	{`{"pools":[{"name":"a/b","replicas":[]}]}`, `pools[0].name: "a/b" is no name`},
	{`{"pools":[{"name":"a","cluster":"x","replicas":[]},{"name":"a","cluster":"y","replicas":[]}]}`, `pools[1].name: "a" is the name of another pool`},
	{`{"pools":[{"name":"a","cluster":"x","replicas":[]},{"name":"b","cluster":"x","replicas":[]}]}`, `pools[1].cluster: "x" belongs to another pool`},
	{`{"pools":[{"name":"a","cluster":"x","replicas":[]},{"name":"b","replicas":[]}]}`, "pools[1].cluster: missing"},
	{`{"replicas":["10.0.0.1:1"],"policy":"sticky"}`, "; allowed: sticky_least_loaded, consistent_hash, cache_aware, least_loaded, power_of_two, round_robin, random"},
	{`{"replicas":["10.0.0.1:1"],"health":{"failures":-1}}`, "health.failures: -1 is out of range; allowed: a whole number from 0 to 1000"},
	{`{"replicas":["10.0.0.1:1"],"health":{"cooldown":10}}`, "health.cooldown: 10 is no duration in range"},
	{`{"replicas":["10.0.0.1:1"],"health":{"statuses":["5xx",302]}}`, `health.statuses[1]: 302 is no status of a failure; allowed: a number from 400 to 599, "4xx" or "5xx"`},
	{`{"replicas":["10.0.0.1:1"],"health":{"statuses":["429"]}}`, `health.statuses[0]: "429" is no status of a failure`},
	{`{"replicas":["10.0.0.1:1"],"health":{"max_cooldown":"25h"}}`, `health.max_cooldown: "25h" is no duration in range`},
	{`{"replicas":["10.0.0.1:1"],"health":{"cooldown":"10m"}}`, "health.max_cooldown: 5m0s is less than the cooldown; allowed: 10m0s or more"},
	{`{"replicas":["10.0.0.1:1"],"policy":"least_loded"}`, `policy: "least_loded" is an unknown value; did you mean "least_loaded"?`},
	{`{"replicas":["10.0.0.1:1"],"cache_aware":{"cache_threshold":1.1}}`, "cache_aware.cache_threshold: 1.1 is out of range; allowed: a number from 0 to 1"},
	{`{"replicas":["10.0.0.1:1"],"cache_aware":{"cache_threshold":"0.5"}}`, "cache_threshold: a string where a number belongs; allowed: a number from 0 to 1"},
	{`{"replicas":["10.0.0.1:1"],"cache_aware":{"balance_abs_threshold":0.5}}`, "balance_abs_threshold: 0.5 is out of range; allowed: a whole number from 0 to 1000000"},
	{`{"replicas":["10.0.0.1:1"],"cache_aware":{"balance_rel_threshold":-1}}`, "balance_rel_threshold: -1 is out of range; allowed: a number from 0 to 1000"},
	{`{"replicas":["10.0.0.1:1"],"cache_aware":{"max_prefixes":0}}`, "max_prefixes: 0 is out of range; allowed: a whole number from 1 to 10000000"},
	{`{"pools":[{"name":"a","policy":"sticky","replicas":[]}]}`, `pools[0].policy: "sticky" is an unknown value`},
	{`{"discovery":{}}`, "discovery.admin_cluster: missing; allowed: the name of the gateway's cluster"},
	{`{"discovery":{"admin_cluster":"","interval":"1s"}}`, "discovery.admin_cluster: missing"},
	{`{"discovery":{"admin_cluster":5}}`, "discovery.admin_cluster: a number where a string belongs"},
	{`{"discovery":{"admin_cluster":"x","interval":"10ms"}}`, `discovery.interval: "10ms" is no duration in range`},
	{`{"discovery":["x"]}`, "discovery: a list where an object belongs"},
	{`{"discovery":{"admin_cluster":"x"},"pools":[{"name":"a"},{"name":"b","cluster":"y"}]}`, "pools[0].cluster: missing"},
	{`{"replicas":["10.0.0.1:1"],"consistent_hash":{"load_factor":0.5}}`, "consistent_hash.load_factor: 0.5 is out of range; allowed: 0 for no bound, or a number from 1 to 1000"},
	{`{"replicas":["10.0.0.1:1"],"consistent_hash":{"load_factor":1001}}`, "1001 is out of range"},
	{`{"replicas":["10.0.0.1:1"],"consistent_hash":{"load_factor":"1"}}`, "load_factor: a string where a number belongs; allowed: 0 for no bound"},
	{`{"replicas":["10.0.0.1:1"],"target":{"spares":9}}`, "target.spares: 9 is out of range; allowed: a whole number from 0 to 8"},
	{`{"replicas":["10.0.0.1:1"],"target":{"encoding":"base64","spares":1}}`, "target.spares: given with base64"},
	{`{"replicas":["10.0.0.1:1"],"release":{"path":"finish"}}`, `release.path: "finish" is not a path`},
	{`{"replicas":["10.0.0.1:1"],"admin":{"path":""}}`, `admin.path: "" is no path for it; allowed: a path such as "/pinwheel"`},
	{`{"replicas":["10.0.0.1:1"],"admin":{"path":"/"}}`, `admin.path: "/" is no path for it`},
	{`{"replicas":["10.0.0.1:1"],"admin":{"path":"pinwheel"}}`, `admin.path: "pinwheel" is no path for it`},
	{`{"replicas":["10.0.0.1:1"],"admin":{"path":"/pinwheel/"}}`, `admin.path: "/pinwheel/" is no path for it`},
	{`{"replicas":["10.0.0.1:1"],"admin":{"path":"/a?b"}}`, `admin.path: "/a?b" is no path for it`},
	{`{"replicas":["10.0.0.1:1"],"admin":{"secret":5}}`, "admin.secret: a number where a string belongs"},
	{`{"replicas":["10.0.0.1:1"],"admin":true}`, "admin: a boolean where an object belongs"},
	{`{"replicas":["10.0.0.1:1"],"admin":{"path":"/finish_session"}}`, `admin.path: "/finish_session" is where releases go`},
	{`{"replicas":["10.0.0.1:1"],"admin":{},"release":{"path":"/pinwheel/reset"}}`, `admin.path: "/pinwheel" is where releases go`},
	{`{"replicas":["10.0.0.1:1"],"admin":{"secret_header":"X-S"},"target":{"header":"x-s"}}`, `target.header: "x-s" has another meaning`},
	{`{"replicas":["10.0.0.1:1"],"re\nlease":{}}`, `re lease: unknown key; did you mean "release"?`},
	{"{\"replicas\":[\"10.0.0.1:1\"],\"session\":{\"max_sessions\":[1,\n2]}}", "session.max_sessions: a list where a number belongs"},
	{`{"pools":[{"name":"a","replicas":[]},{"name":"b","replicas":[]}]}`, "pools[0].cluster: missing"},
	{`{"replicas":["10.0.0.1:1"],"release":{"path":"/finish?all"}}`, `release.path: "/finish?all" is not a path`},
	{`{"replicas":["10.0.0.1:1"],"target":{"header":"X-Session-ID"}}`, `target.header: "x-session-id" has another meaning`},
	{`{"replicas":["10.0.0.1:1"],"target":{"header":"host"}}`, `target.header: "host" has another meaning`},
	{`{"replicas":["10.0.0.1:1"],"debug_headers":"yes"}`, "debug_headers: a string where a boolean belongs"},
	{`{"replicas":["10.0.0.1:1"],"decision_log":{"sample":2}}`, "decision_log.sample: 2 is out of range; allowed: a number from 0 to 1"},
}

func TestParseConfigRefusesInOneLine(t *testing.T) {
	for _, r := range refused {
		_, err := ParseConfig([]byte(r.config))
		switch {
		case err == nil:
			t.Errorf("%s: accepted", r.config)
		case !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), r.says) || !strings.Contains(err.Error(), "; allowed: "):
			t.Errorf("%s:\n got %q\nwant %q in it", r.config, err, r.says)
		case strings.Contains(err.Error(), "\n"):
			t.Errorf("%s: more than one line: %q", r.config, err)
		}
	}
}

func FuzzParseConfig(f *testing.F) {
	for _, r := range refused {
		f.Add([]byte(r.config))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := ParseConfig(text)
		if (c == nil) == (err == nil) {
			t.Fatalf("config %v, error %v", c, err)
		}
		if err != nil && strings.ContainsAny(err.Error(), "\n\r") {
			t.Fatalf("more than one line: %q", err)
		}
	})
}

func readSchema(t *testing.T) map[string]any {
	t.Helper()
	text, err := os.ReadFile("config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	var schema map[string]any
	if err := json.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	return schema
}

// What editors are told and what the parser takes must not drift apart.
func TestSchemaAndParserKnowTheSameKeys(t *testing.T) {
	schema := readSchema(t)
	const base = `{"replicas":["10.0.0.1:1"]`
	objects := map[string]struct {
		schema any
		probe  string // a configuration with the unknown key "?" in the object
	}{
		"":                {schema, base + `,"?":1}`},
		"pools[]":         {at(schema, "properties", "pools", "items"), `{"pools":[{"?":1}]}`},
		"replicas[]":      {at(schema, "$defs", "replicas", "items", "oneOf", "1"), `{"replicas":[{"?":1}]}`},
		"session":         {at(schema, "properties", "session"), base + `,"session":{"?":1}}`},
		"target":          {at(schema, "properties", "target"), base + `,"target":{"?":1}}`},
		"release":         {at(schema, "properties", "release"), base + `,"release":{"?":1}}`},
		"admin":           {at(schema, "properties", "admin"), base + `,"admin":{"?":1}}`},
		"health":          {at(schema, "properties", "health"), base + `,"health":{"?":1}}`},
		"consistent_hash": {at(schema, "properties", "consistent_hash"), base + `,"consistent_hash":{"?":1}}`},
		"cache_aware":     {at(schema, "properties", "cache_aware"), base + `,"cache_aware":{"?":1}}`},
		"discovery":       {at(schema, "properties", "discovery"), base + `,"discovery":{"?":1}}`},
		"agreement":       {at(schema, "properties", "agreement"), base + `,"agreement":{"?":1}}`},
		"decision_log":    {at(schema, "properties", "decision_log"), base + `,"decision_log":{"?":1}}`},
	}
	for name, o := range objects {
		var inSchema []string
		for key := range at(o.schema, "properties").(map[string]any) {
			inSchema = append(inSchema, key)
		}
		_, err := ParseConfig([]byte(o.probe))
		_, allowed, _ := strings.Cut(fmt.Sprint(err), "; allowed: ")
		inParser := strings.Split(allowed, ", ")
		slices.Sort(inSchema)
		slices.Sort(inParser)
		if !slices.Equal(inSchema, inParser) {
			t.Errorf("%q: schema has %v, parser has %v", name, inSchema, inParser)
		}
		if closed, _ := at(o.schema, "additionalProperties").(bool); closed || at(o.schema, "additionalProperties") == nil {
			t.Errorf("%q: the schema lets unknown keys pass", name)
		}
	}
}

// Each policy that the schema names is one, and the other way round.
func TestSchemaAndParserKnowTheSamePolicies(t *testing.T) {
	var names []string
	for _, name := range at(readSchema(t), "properties", "policy", "enum").([]any) {
		names = append(names, name.(string))
	}
	if !slices.Equal(names, policyNames) {
		t.Errorf("schema has %v, parser has %v", names, policyNames)
	}
	for _, name := range policyNames {
		c := defaultConfig()
		if want, _ := policy.New(name, policy.Options{LoadFactor: 1.25, Threshold: 0.3, BalanceAbs: 64, BalanceRel: 1.5}); c.chooser(name) != want {
			t.Errorf("%s is %T", name, c.chooser(name))
		}
	}
}

func at(v any, path ...string) any {
	for _, p := range path {
		switch c := v.(type) {
		case map[string]any:
			v = c[p]
		case []any:
			v = c[p[0]-'0']
		}
	}
	return v
}

// The defaults that the schema tells are those that the parser uses: a
// configuration that spells them all out equals one that gives none.
func TestSchemaDefaultsAreTheParsers(t *testing.T) {
	spelled := map[string]any{"replicas": []string{"10.0.0.1:1"}}
	needed := map[string]any{"replicas": spelled["replicas"]}
	for key, v := range at(readSchema(t), "properties").(map[string]any) {
		if d, ok := at(v, "default").(any); ok && d != nil {
			spelled[key] = d
		}
		properties, ok := at(v, "properties").(map[string]any)
		if !ok {
			continue
		}
		object := map[string]any{}
		for k, v := range properties {
			if d := at(v, "default"); d != nil {
				object[k] = d
			}
		}
		if required, ok := at(v, "required").([]any); ok {
			some := map[string]any{}
			for _, k := range required {
				some[k.(string)], object[k.(string)] = "x", "x"
			}
			needed[key] = some
		}
		spelled[key] = object
	}
	parse := func(v any) *Config {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		c, err := ParseConfig(text)
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		return c
	}
	got, want := parse(spelled), parse(needed)
	if want.Admin != (AdminConfig{}) {
		t.Errorf("admin is on without a word of it: %+v", want.Admin)
	}
	want.Admin = defaultAdmin      // to name it is to turn it on
	got.Session.ScopeHeaders = nil // [] is the same as none
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %+v\nwant %+v", got, want)
	}
}

// rulesBeyondSchema are refusals that a JSON schema cannot express.
var rulesBeyondSchema = []string{
	"line 2", "empty; allowed: a JSON", "given twice", "listed twice", "another pool", "given with base64",
	"no duration in range", "less than the cooldown", "has another meaning", "is where releases go", ".cluster: missing", `"10.0.0.1:0"`,
}

func TestSchemaRefusesWhatTheParserRefuses(t *testing.T) {
	schema, err := jsonschema.NewCompiler().Compile("config.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	check := func(text string) error {
		v, err := jsonschema.UnmarshalJSON(strings.NewReader(text))
		if err != nil {
			return err
		}
		return schema.Validate(v)
	}
	for _, r := range refused {
		_, err := ParseConfig([]byte(r.config))
		beyond := slices.ContainsFunc(rulesBeyondSchema, func(s string) bool { return strings.Contains(fmt.Sprint(err), s) })
		if !beyond && check(r.config) == nil {
			t.Errorf("the schema accepts what the parser refuses: %s", r.config)
		}
	}
	for _, good := range []string{
		`{"replicas":["10.0.0.1:8000","[fd00::2]:8000"]}`,
		`{"replicas":[{"address":"10.0.0.1:8000","weight":2,"state":"unhealthy"}],"session":{"preset":"agents"}}`,
		`{"discovery":{"admin_cluster":"x"}}`,
		`{"discovery":{"admin_cluster":"x","interval":"100ms"},"replicas":["10.0.0.1:8000"]}`,
		`{"discovery":{"admin_cluster":"x"},"pools":[{"name":"a","cluster":"x"},{"name":"b","cluster":"y","replicas":[]}]}`,
		`{"pools":[{"name":"a","cluster":"x","replicas":[]}],"target":{"encoding":"base64"},"release":{"path":""}}`,
		`{"replicas":["10.0.0.1:1"],"admin":{}}`,
		`{"replicas":["10.0.0.1:1"],"admin":{"path":"/p"},"release":{"path":"/pinwheel"}}`,
		`{"replicas":["10.0.0.1:1"],"admin":{"path":"/finish"}}`,
		`{"replicas":["10.0.0.1:1"],"session":{"body":["metadata.session_id","a\\.b","messages.0.id","é"]},"body":{"wait":"2s"}}`,
	} {
		if err := check(good); err != nil {
			t.Errorf("the schema refuses %s: %v", good, err)
		}
		if _, err := ParseConfig([]byte(good)); err != nil {
			t.Errorf("the parser refuses %s: %v", good, err)
		}
	}
}
