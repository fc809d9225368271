package suite

import (
	"context"
	"slices"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
)

// A start costs tens of milliseconds, most of it for reading the module. Cases without settings of their own all start in
// the same way, so the runner starts once and sets the plugin back for each: a snapshot holds everything that a module can
// notice.

// started is the moment after a start, to which a plugin can be set back.
type started struct {
	snapshot *hostsim.Snapshot
	mark     mark
	calls    []madeCall
	given    map[string][]int // answers used up, by cluster
}

// remember makes it possible to set p back. Some hosts cannot be; then each case has a new one.
func (p *plugin) remember() {
	snapshot, err := p.host.Snapshot()
	if err != nil {
		return
	}
	s := &started{snapshot: snapshot, mark: p.mark(), given: map[string][]int{}}
	for _, c := range p.calls {
		s.calls = append(s.calls, *c)
	}
	for name, u := range p.clusters {
		s.given[name] = slices.Clone(u.given)
	}
	p.started = s
}

// setBack returns to the moment that was remembered, and reports whether that could be done.
func (p *plugin) setBack() bool {
	s := p.started
	if s == nil || p.host.Restore(s.snapshot) != nil {
		return false
	}
	p.unasked, p.crashes = p.unasked[:s.mark.unasked], nil
	p.forget(s.mark.log)
	p.calls = nil
	for _, c := range s.calls {
		p.calls = append(p.calls, &c)
	}
	for name, u := range p.clusters {
		copy(u.given, s.given[name])
	}
	return true
}

// fresh returns a plugin that has just started with the case's settings.
func (r *run) fresh(ctx context.Context, c *testCase, wasm []byte) (*plugin, error) {
	if c.own != r.suite.base || r.options.Recorder != nil {
		return r.start(ctx, c.own, wasm)
	}
	if r.warm != nil {
		if r.warm.setBack() {
			return r.warm, nil
		}
		old := r.warm
		r.warm = nil
		if err := r.retire(old); err != nil {
			return nil, err
		}
	}
	p, err := r.start(ctx, c.own, wasm)
	if err == nil && p.host != nil {
		if p.remember(); p.started != nil {
			r.warm = p
		}
	}
	return p, err
}
