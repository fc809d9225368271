package suite

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// Options say how to run a suite. The zero value runs all cases as they are written.
type Options struct {
	// Wasm is the path of the module to run in place of the suite's own. Empty means plugin.wasm.
	Wasm string
	// Profile names the gateway to imitate in place of the suite's own. Empty means gateway.profile.
	Profile string
	// Only selects the cases whose name it matches. Nil means all. A shared suite runs the others too, unreported, for
	// its cases build on each other.
	Only *regexp.Regexp
	// CacheDir is as in hostsim.Config.
	CacheDir string
	// Now is the clock that measures how long a case takes. Nil means the machine's.
	Now func() time.Time
	// Begin, if not nil, hears the name of each case before it runs.
	Begin func(name string)
	// Done, if not nil, hears of each case when it has ended.
	Done func(*Result)
	// Coverage, if not nil, gathers what the cases made the plugin do, but for starts that were refused.
	Coverage *hostsim.Coverage
	// Recorder, if not nil, takes down all that happens, one host after the other.
	Recorder *hostsim.Recorder
}

// Result is what became of one case.
type Result struct {
	// Name is the case's, File and Line are where it stands.
	Name string `json:"name"`
	File string `json:"file"`
	Line int    `json:"line"`
	// OK is true when everything was as expected.
	OK bool `json:"ok"`
	// Duration is on the machine's clock.
	Duration time.Duration `json:"duration_ns"`
	// Problems are the expectations that did not hold, in the order of the text. Steps after the first one with a problem
	// have not run.
	Problems []Problem `json:"problems,omitempty"`
	// Log is what was logged in the course of the case, oldest first.
	Log []hostsim.LogEntry `json:"-"`
	// LastStep is the place in Log at which the last step that ran began. 0 where none did.
	LastStep int `json:"-"`
}

// Run runs the cases in the order of the text and returns a result for each. The error is an *Invalid where the suite
// names a module that cannot be read, or wraps hostsim.ErrConfig; it is ctx's when that ends, with the results so far.
func (s *Suite) Run(ctx context.Context, o Options) ([]*Result, error) {
	if o.Now == nil {
		o.Now = time.Now
	}
	r := &run{suite: s, options: o, modules: map[string][]byte{}}
	results, err := r.all(ctx)
	return results, errors.Join(err, r.close())
}

// all runs the cases that are selected.
func (r *run) all(ctx context.Context) (results []*Result, err error) {
	s, o := r.suite, r.options
	for _, c := range s.cases {
		if err := ctx.Err(); err != nil {
			return results, err
		}
		selected := o.Only == nil || o.Only.MatchString(c.name)
		if !selected && !s.shared {
			continue
		}
		if selected && o.Begin != nil {
			o.Begin(c.name)
		}
		result, err := r.testCase(ctx, c)
		if err != nil {
			return results, err
		}
		if !selected {
			continue
		}
		results = append(results, result)
		if o.Done != nil {
			o.Done(result)
		}
	}
	return results, nil
}

// run is a suite on its way.
type run struct {
	suite   *Suite
	options Options
	modules map[string][]byte // by path
	plugin  *plugin           // of a shared suite, once started
	warm    *plugin           // started with the suite's settings, to be set back for each case
}

// close ends the plugin of a shared suite, or the one that was set back for each case.
func (r *run) close() error {
	for _, p := range []*plugin{r.plugin, r.warm} {
		if p != nil {
			return r.retire(p)
		}
	}
	return nil
}

// retire frees a plugin and keeps what it has covered.
func (r *run) retire(p *plugin) error {
	if p.host == nil {
		return nil
	}
	if r.options.Coverage != nil {
		r.options.Coverage.Merge(p.host.Coverage())
	}
	return p.host.Close()
}

// module reads the module that a case runs.
func (r *run) module(s *settings) ([]byte, error) {
	invalid := func(p place, format string, args ...any) error {
		return &Invalid{[]Problem{{File: r.suite.file, Line: p.line, Column: p.column, Path: p.path, Text: fmt.Sprintf(format, args...)}}}
	}
	path, at := r.options.Wasm, place{}
	if path == "" && s.wasm == nil {
		return nil, invalid(place{line: 1, column: 1}, "no plugin.wasm; needed, or --wasm FILE")
	}
	if path == "" {
		path, at = beside(r.suite.file, s.wasm.text), s.wasm.place
	}
	if wasm, ok := r.modules[path]; ok {
		return wasm, nil
	}
	wasm, err := ReadFile(path, MaxModule)
	if err == nil && !hasMagic(wasm) {
		err = fmt.Errorf("%s: not a WebAssembly module", path)
	}
	if err != nil {
		return nil, invalid(at, "%s; name a compiled module, as seen from the suite's folder, or give --wasm FILE", reason(err))
	}
	r.modules[path] = wasm
	return wasm, nil
}

func hasMagic(wasm []byte) bool { return len(wasm) >= 4 && string(wasm[:4]) == "\x00asm" }

// testCase runs one case. The error is about the run itself.
func (r *run) testCase(ctx context.Context, c *testCase) (*Result, error) {
	began := r.options.Now()
	wasm, err := r.module(c.own)
	if err != nil {
		return nil, err
	}
	p := r.plugin
	fresh := p == nil
	if fresh {
		if p, err = r.fresh(ctx, c, wasm); err != nil {
			return nil, err
		}
	}
	a := &attempt{plugin: p, suite: r.suite, of: c, streams: map[string]*stream{}}
	a.mark = p.mark()
	if c.ownFaults {
		a.faults = c.own.faults
	}
	if fresh {
		a.mark = mark{}
		a.checkStart(c)
	}
	first := a.mark
	for _, st := range c.steps {
		if len(a.problems) > 0 || p.host == nil {
			break
		}
		a.step(st)
	}
	a.finish()
	switch {
	case r.suite.shared && p.host != nil:
		r.plugin, r.warm = p, nil
	case p == r.warm:
	default:
		if err := r.retire(p); err != nil {
			return nil, err
		}
	}
	log := p.log[first.log:]
	return &Result{Name: c.name, File: r.suite.file, Line: c.line, OK: len(a.problems) == 0,
		Duration: r.options.Now().Sub(began), Problems: a.problems, Log: slices.Clone(log), LastStep: a.mark.log - first.log}, nil
}

// start starts a plugin. A refused start is not an error here: a case may expect it.
func (r *run) start(ctx context.Context, s *settings, wasm []byte) (*plugin, error) {
	p := &plugin{clusters: newUpstreams(s.clusters)}
	c := s.config
	c.Wasm, c.CacheDir = wasm, r.options.CacheDir
	if r.options.Profile != "" {
		profile, ok := hostsim.ProfileByName(r.options.Profile)
		if !ok {
			return nil, fmt.Errorf("%w: no profile %q", hostsim.ErrConfig, r.options.Profile)
		}
		c.Profile = profile
	}
	p.clock = hostsim.NewVirtualClock()
	c.Clock, c.Log, c.LogLimit, c.HTTPCall, c.GRPCCall = p.clock, p.logged, 1, p.httpCall, p.grpcCall
	c.Faults, c.Recorder = plain(s.faults), r.options.Recorder
	p.host, p.refused = hostsim.New(ctx, c)
	if p.refused != nil && (errors.Is(p.refused, hostsim.ErrConfig) || ctx.Err() != nil) {
		return nil, p.refused
	}
	return p, nil
}
