package suite

import "github.com/pinwheel-proxy/pinwheel/hostsim"

// plugin is a running plugin with what it has logged and which requests it has made. A suite runs on one goroutine, and so
// does all that the plugin does.
type plugin struct {
	host     *hostsim.Host // nil where the start was refused
	refused  error
	clock    *hostsim.VirtualClock
	log      []hostsim.LogEntry
	logBytes int // also of what is not kept
	calls    []*madeCall
	clusters map[string]*upstream
	unasked  []string // requests that no answer is for
	crashes  map[int]error
	started  *started // nil where it cannot be set back
}

// mark is a moment in what a plugin has done.
type mark struct{ log, calls, unasked int }

func (p *plugin) mark() mark { return mark{len(p.log), len(p.calls), len(p.unasked)} }

// maxLogBytes bounds what is kept of the log, for expectations and reports.
const maxLogBytes = 64 << 20

func (p *plugin) logged(e hostsim.LogEntry) {
	was := p.logBytes
	if p.logBytes += len(e.Message); p.logBytes <= maxLogBytes {
		p.log = append(p.log, e)
	} else if was <= maxLogBytes {
		e.Level, e.Message = hostsim.LogCritical, "hostsim: more than 64 MiB of log: this and what follows is not kept"
		p.log = append(p.log, e)
	}
}

// forget takes back what was logged after the first n entries.
func (p *plugin) forget(n int) {
	p.log, p.logBytes = p.log[:n], 0
	for _, e := range p.log {
		p.logBytes += len(e.Message)
	}
}

// newCrash is the trap of a virtual machine that lived at the last look, or nil.
func (p *plugin) newCrash() (crash error) {
	if p.crashes == nil {
		p.crashes = map[int]error{}
	}
	look := func(w *hostsim.Worker) {
		if err := w.Err(); err != p.crashes[w.Index()] {
			p.crashes[w.Index()] = err
			if err != nil && crash == nil {
				crash = err
			}
		}
	}
	look(p.host.Main())
	for i := range p.host.Workers() {
		look(p.host.Worker(i))
	}
	return crash
}
