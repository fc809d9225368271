// Package hosttest runs a proxy-wasm plugin in a Go test, in a host that behaves like Envoy (package hostsim):
//
//	h := hosttest.New(t, hosttest.Options{Wasm: "plugin.wasm", Config: `{"greeting":"hi"}`, Workers: 2})
//	got := h.Do(0, hosttest.Request{Path: "/", Headers: hosttest.Headers{{"x-session-id", "a"}}})
//	if got.Request.Value("x-greeting") != "hi" {
//		t.Errorf("request headers %v", got.Request)
//	}
//
// What goes wrong around the plugin is one line too: an upstream that takes no connection, breaks off or is slow
// (Response.Fault, Response.After), replicas that are down behind a retry (Request.Replicas), a client that leaves
// (Request.LeaveAt), a host call that fails, a callback that crashes, memory that runs out (hostsim.Fault), and a
// configuration that changes (Host.Reconfigure).
//
// The clock stands still until the test moves it with Advance, and random numbers come from a seed, so a test runs the
// same way every time. Everything of hostsim.Host is at hand for tests that need single steps, races or faults.
package hosttest

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// Headers is hostsim.Headers, so that a test needs this one import.
type Headers = hostsim.Headers

// Options says which plugin to run and how. Only Wasm is required.
type Options struct {
	// Wasm is the path of the module.
	Wasm string
	// Build is the command that makes it, shown when the file is missing. Empty names the one for official Go.
	Build string
	// Config is the plugin's configuration, VMConfig that of its virtual machine.
	Config, VMConfig string
	// RootID is the plugin's root_id, by which some SDKs choose among several plugins in one module.
	RootID string
	// Clusters are the clusters that the plugin may send requests of its own to, by name, and what each answers, at once.
	// A request to another cluster is refused (BAD_ARGUMENT). Adjust with Config.HTTPCall instead decides for each call.
	Clusters map[string]Response
	// Properties are what the plugin reads by proxy_get_property, by path such as "node.id", as text. See also
	// Request.Properties and hostsim.PropertyInt.
	Properties map[string]string
	// Workers is the number of worker threads. Zero means 1.
	Workers int
	// Profile names the gateway to imitate, as in hostsim.ProfileByName. Empty means the default one.
	Profile string
	// AllowTraps keeps a crash of the plugin from failing the test.
	AllowTraps bool
	// Adjust, if not nil, changes the host's configuration before it starts, for everything that has no field here.
	Adjust func(*hostsim.Config)
}

// Host is a running plugin. It closes itself at the end of the test.
type Host struct {
	*hostsim.Host
	t       testing.TB
	options Options
}

// New starts the plugin, or ends the test: a missing module fails, it never skips.
func New(t testing.TB, o Options) *Host {
	t.Helper()
	h, err := Start(t, o)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Start is New for tests of a start that must fail: it returns the plugin's refusal, and still ends the test when the
// module is missing or an option is unknown. A test that fails shows what the plugin logged.
func Start(t testing.TB, o Options) (*Host, error) {
	t.Helper()
	c := hostsim.Config{Wasm: read(t, o), PluginConfig: []byte(o.Config), VMConfig: []byte(o.VMConfig), Workers: o.Workers,
		RootID: o.RootID, CacheDir: cacheDir()}
	if o.Clusters != nil {
		c.HTTPCall = o.answer
	}
	for path, value := range o.Properties {
		if c.Properties == nil {
			c.Properties = map[string][]byte{}
		}
		c.Properties[path] = []byte(value)
	}
	if o.Profile != "" {
		p, ok := hostsim.ProfileByName(o.Profile)
		if !ok {
			t.Fatalf("hosttest: unknown profile %q; allowed: %s", o.Profile, profileNames())
		}
		c.Profile = p
	}
	if o.Adjust != nil {
		o.Adjust(&c)
	}
	var log startLog
	c.Log = log.before(c.Log)
	host, err := hostsim.New(context.Background(), c)
	log.over.Store(true)
	if err != nil {
		t.Cleanup(func() {
			if t.Failed() {
				show(t, log.entries)
			}
		})
		return nil, err
	}
	log.entries = nil
	h := &Host{Host: host, t: t, options: o}
	t.Cleanup(h.finish)
	return h, nil
}

// finish frees the host and shows its last log lines when the test has failed.
func (h *Host) finish() {
	if h.t.Failed() {
		show(h.t, h.Logs())
	}
	if err := h.Close(); err != nil {
		h.t.Errorf("hosttest: close: %v", err)
	}
}

// profileNames are the values of Options.Profile.
func profileNames() string {
	var names []string
	for _, p := range hostsim.Profiles() {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

func read(t testing.TB, o Options) []byte {
	t.Helper()
	wasm, err := os.ReadFile(o.Wasm)
	if errors.Is(err, fs.ErrNotExist) {
		build := o.Build
		if build == "" {
			build = "GOOS=wasip1 GOARCH=wasm go build -buildmode=c-shared -o " + o.Wasm + " ."
		}
		t.Fatalf("hosttest: there is no module %s; build it with: %s", o.Wasm, build)
	}
	if err != nil {
		t.Fatalf("hosttest: %v", err)
	}
	return wasm
}

// cacheDir is where compiled modules live between runs of a test, or "" where the machine has no place for caches.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "hostsim")
}

// answer is the Config.HTTPCall of Options.Clusters.
func (o Options) answer(call *hostsim.HTTPCall) bool {
	r, ok := o.Clusters[call.Cluster]
	if ok {
		call.Respond(hostsim.HTTPResponse{Headers: r.headers(), Body: []byte(strings.Join(chunksOf(r.Body, r.Chunks), "")), Trailers: r.Trailers})
	}
	return ok
}

// Metric returns a counter's value, a gauge's, which may be negative, or a histogram's number of records; 0 for a metric
// that the plugin has not defined.
func (h *Host) Metric(name string) int64 {
	m, ok := h.Host.Metric(name)
	if ok && m.Kind == hostsim.MetricHistogram {
		return int64(m.Count)
	}
	return m.Signed()
}

// Messages returns the messages logged at level or above, oldest first.
func (h *Host) Messages(level hostsim.LogLevel) []string {
	var out []string
	for _, e := range h.Logs() {
		if e.Level >= level {
			out = append(out, e.Message)
		}
	}
	return out
}

// Logged says whether a message of any level contains text.
func (h *Host) Logged(text string) bool {
	return slices.ContainsFunc(h.Logs(), func(e hostsim.LogEntry) bool { return strings.Contains(e.Message, text) })
}
