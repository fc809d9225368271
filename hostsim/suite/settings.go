package suite

import (
	"maps"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// settings are the plugin and the gateway that a case runs in. A case's own come on top of the suite's, key by key.
type settings struct {
	wasm     *named // nil where the suite names none
	config   hostsim.Config
	clusters map[string]*cluster
	faults   []fault
}

// named is text with its place.
type named struct {
	place
	text string
}

// clone is a copy for a case to change.
func (s *settings) clone() *settings {
	out := *s
	out.config.Env = maps.Clone(s.config.Env)
	out.config.Properties = maps.Clone(s.config.Properties)
	out.clusters = maps.Clone(s.clusters)
	return &out
}

var pluginFields = []field[settings]{
	{"wasm", func(d *decoder, v value, s *settings) {
		var path string
		d.name(v, &path)
		s.wasm = &named{v.place, path}
	}},
	{"config", func(d *decoder, v value, s *settings) { d.configuration(v, &s.config.PluginConfig) }},
	{"config_file", func(d *decoder, v value, s *settings) { d.readFile(v, &s.config.PluginConfig) }},
	{"vm_config", func(d *decoder, v value, s *settings) { d.configuration(v, &s.config.VMConfig) }},
	{"vm_id", func(d *decoder, v value, s *settings) { d.text(v, &s.config.VMID) }},
	{"root_id", func(d *decoder, v value, s *settings) { d.text(v, &s.config.RootID) }},
	{"name", func(d *decoder, v value, s *settings) { d.text(v, &s.config.Name) }},
	{"env", func(d *decoder, v value, s *settings) {
		env := maps.Clone(s.config.Env)
		if env == nil {
			env = map[string]string{}
		}
		for _, m := range d.members(v, "a mapping of names to values") {
			if text, ok := d.scalar(m.value, "text"); ok {
				env[m.key] = text
			}
		}
		s.config.Env = env
	}},
}

var gatewayFields = []field[settings]{
	{"profile", func(d *decoder, v value, s *settings) {
		if i := d.oneOf(v, profileNames()); i >= 0 {
			s.config.Profile = hostsim.Profiles()[i]
		}
	}},
	{"workers", func(d *decoder, v value, s *settings) { d.count(v, 1, 256, &s.config.Workers) }},
	{"seed", func(d *decoder, v value, s *settings) {
		n := int64(s.config.Seed)
		d.integer(v, 0, 1<<62, &n)
		s.config.Seed = uint64(n)
	}},
	{"failure_policy", func(d *decoder, v value, s *settings) {
		if i := d.oneOf(v, failurePolicies); i >= 0 {
			s.config.FailurePolicy = hostsim.FailurePolicy(i)
		}
	}},
	{"reload_backoff", func(d *decoder, v value, s *settings) { d.duration(v, &s.config.ReloadBackoff) }},
	{"buffer_limit", func(d *decoder, v value, s *settings) { d.count(v, 1, 1<<30, &s.config.BufferLimit) }},
	{"memory_limit_pages", func(d *decoder, v value, s *settings) {
		n := int64(s.config.MemoryLimitPages)
		d.integer(v, 1, 65536, &n)
		s.config.MemoryLimitPages = uint32(n)
	}},
	{"allow_on_headers_stop_iteration", func(d *decoder, v value, s *settings) {
		d.boolean(v, &s.config.AllowOnHeadersStopIteration)
	}},
	{"log_level", func(d *decoder, v value, s *settings) {
		if i := d.oneOf(v, logLevels); i >= 0 {
			s.config.LogLevel = hostsim.LogLevel(i)
		}
	}},
	{"properties", func(d *decoder, v value, s *settings) {
		p := properties(s.config.Properties)
		d.properties(v, &p)
		s.config.Properties = p
	}},
	{"call_timeout", func(d *decoder, v value, s *settings) { d.duration(v, &s.config.CallTimeout) }},
	{"faults", func(d *decoder, v value, s *settings) { s.faults = d.faults(v) }},
	{"foreign_functions", func(d *decoder, v value, s *settings) { d.foreignFunctions(v, &s.config.ForeignFunctions) }},
	{"clusters", func(d *decoder, v value, s *settings) { d.clusters(v, &s.clusters) }},
}

var (
	failurePolicies = []string{"fail_closed", "fail_open", "fail_reload"}
	logLevels       = []string{"trace", "debug", "info", "warn", "error", "critical"}
	endReasons      = []string{"normal", "client_gone", "upstream_reset", "timeout"}
)

// profileNames are in the order of hostsim.Profiles.
func profileNames() []string {
	var names []string
	for _, p := range hostsim.Profiles() {
		names = append(names, p.Name)
	}
	return names
}

// configuration reads text, given to the plugin as it is, or anything else, given as JSON.
func (d *decoder) configuration(v value, into *[]byte) {
	f, ok := d.follow(v)
	if !ok {
		return
	}
	if f.node.Kind == yaml.ScalarNode {
		if f.node.ShortTag() == "!!null" {
			*into = []byte{}
		} else if s, ok := d.scalar(v, "text or a mapping"); ok {
			*into = []byte(s)
		}
		return
	}
	if text, ok := d.json(v); ok {
		*into = text
	}
}

// plugin reads the plugin's settings.
func (d *decoder) plugin(v value, s *settings) {
	has := object(d, v, pluginFields, s)
	_, config := has["config"]
	if p, file := has["config_file"]; config && file {
		d.fail(p, "config and config_file; allowed: one of them")
	}
}

// cluster is an upstream that the plugin's own requests may go to. The first answer that is for a request, and not used up,
// is what comes back.
type cluster struct{ answers []*answer }

// answer is what a cluster sends back.
type answer struct {
	message
	after time.Duration
	// grpcStatus and grpcMessage end the answer to a gRPC call.
	grpcStatus  int
	grpcMessage string
	failure     int // of answerFailures, or -1
	when        *callout
	times       int // 0 for no bound
}

var answerFailures = []string{"unreachable", "reset", "none"}

var answerFields = func() []field[answer] {
	var list []field[answer]
	for _, f := range responseFields {
		if f.key != "more" && f.key != "properties" {
			list = append(list, field[answer]{f.key, func(d *decoder, v value, a *answer) { f.read(d, v, &a.message) }})
		}
	}
	return append(list,
		field[answer]{"after", func(d *decoder, v value, a *answer) { d.duration(v, &a.after) }},
		field[answer]{"grpc_status", func(d *decoder, v value, a *answer) { d.count(v, 0, 16, &a.grpcStatus) }},
		field[answer]{"grpc_message", func(d *decoder, v value, a *answer) { d.text(v, &a.grpcMessage) }},
		field[answer]{"failure", func(d *decoder, v value, a *answer) { a.failure = d.oneOf(v, answerFailures) }},
		field[answer]{"when", func(d *decoder, v value, a *answer) { a.when = d.callout(v, whenFields) }},
		field[answer]{"times", func(d *decoder, v value, a *answer) { d.count(v, 1, 1<<30, &a.times) }},
	)
}()

func (d *decoder) clusters(v value, into *map[string]*cluster) {
	out := map[string]*cluster{}
	maps.Copy(out, *into)
	for _, m := range d.members(v, "a mapping of cluster names to lists of answers") {
		c := &cluster{}
		for _, item := range d.items(m.value, "a list of answers") {
			a := &answer{message: message{place: item.place, response: true}, failure: -1}
			n := len(d.problems)
			has := object(d, item, answerFields, a)
			if _, failure := has["failure"]; failure && !d.failed(n) {
				for _, key := range []string{"status", "headers", "body", "trailers", "grpc_status", "grpc_message"} {
					if p, ok := has[key]; ok {
						d.fail(p, "a failure has no %s", key)
					}
				}
			}
			c.answers = append(c.answers, a)
		}
		out[m.key] = c
	}
	*into = out
}
