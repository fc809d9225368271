package hostsim

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// CheckReport says what Check has compared.
type CheckReport struct {
	// Recordings is the number of recordings in the file, one for each host that was recorded.
	Recordings int `json:"recordings"`
	// SameModule is true when the module is, byte for byte, the one that was recorded, in every recording.
	SameModule bool `json:"same_module"`
	// VMs, Callbacks and HostCalls count what was equal.
	VMs       int    `json:"vms"`
	Callbacks uint64 `json:"callbacks"`
	HostCalls uint64 `json:"host_calls"`
	// Memories counts the virtual machines whose whole memory was equal, bit for bit, at their end. It is 0 for another
	// build of the plugin and for a recording with redacted headers, where memory cannot be equal.
	Memories int `json:"memories"`
	// Redacted names the headers whose values the recording hides.
	Redacted []string `json:"redacted,omitempty"`
}

// Check plays a recording to a module: it makes an instance for each virtual machine, calls each recorded callback with
// the recorded arguments, and answers each host call as recorded, the time and random numbers among them. No gateway, no
// worker and no clock is needed. The error is a *Difference (which wraps ErrDifference) at the first callback result or
// host call that is not as recorded; it wraps ErrRecording when the recording cannot be read to its end, and ErrABI when
// the module cannot run at all, ErrMemory where it needs more memory than the recorded limit. The report, which is never nil, counts what was equal up to there.
//
// The very module that was recorded must also read the clock and random numbers at the same points and leave every memory
// behind as it was. Another build is compared by what it does as a plugin: callback results, and its host calls in order
// with their arguments; its runtime's own WASI calls, save writing, may differ.
//
// Each virtual machine's sequence counts for itself, in whatever order those of others lie between. A ctx with a deadline
// also ends a module that loops for ever, at several times the cost. Memory is that of the virtual machines that live at
// one time; the recording is streamed.
func Check(ctx context.Context, wasm []byte, recording io.Reader) (*CheckReport, error) {
	c := &checker{ctx: ctx, wasm: wasm, in: newRecordingReader(recording), report: &CheckReport{SameModule: true}}
	sum := sha256.Sum256(wasm)
	c.sum = hex.EncodeToString(sum[:])
	err := c.run()
	return c.report, errors.Join(err, c.close())
}

// checker plays one file.
type checker struct {
	ctx    context.Context
	wasm   []byte
	sum    string
	in     *recordingReader
	report *CheckReport

	host   *Host // for the current recording; the recording answers for it
	strict bool  // it is the very module that was recorded
	vms    map[int]*checkVM
	hidden []string // the recording's redacted headers, in lower case
	totals recordingTotals
}

func (c *checker) run() error {
	for {
		l, err := c.in.next()
		if err == io.EOF {
			return nil
		}
		if err == nil {
			err = c.ctx.Err()
		}
		if err == nil {
			err = c.line(l)
		}
		if err != nil {
			return err
		}
	}
}

// line plays one line.
func (c *checker) line(l *recordedLine) error {
	switch l.Kind {
	case kindHeader:
		return c.begin()
	case kindTrailer:
		return c.end(l)
	case kindEvent:
		return nil
	case kindVM:
		if c.vms[*l.VM] != nil {
			return c.in.errorf("virtual machine %d begins twice", *l.VM)
		}
		if len(c.vms) >= maxVMs {
			return c.in.errorf("more than %d virtual machines at a time", maxVMs)
		}
		m := newCheckVM(c, l)
		c.vms[*l.VM] = m
		c.totals.VMs++
		return m.resume(nil)
	}
	m := c.vms[*l.VM]
	if m == nil {
		return c.in.errorf("virtual machine %d has not begun or has ended", *l.VM)
	}
	if err := m.resume(l); err != nil {
		return err
	}
	c.count(l)
	if l.Kind == kindVMEnd {
		delete(c.vms, *l.VM)
		c.report.VMs++
	}
	return nil
}

// count counts a line and what stands inside it.
func (c *checker) count(l *recordedLine) {
	switch l.Kind {
	case kindCallback:
		c.totals.Callbacks++
		c.report.Callbacks++
	case kindCall:
		c.totals.HostCalls++
		c.report.HostCalls++
	}
	for i := range l.During {
		c.count(&l.During[i])
	}
}

// maxVMs is above what a host of 256 workers has during a change of its configuration.
const maxVMs = 1024

// begin prepares the module for the recording whose header has been read.
func (c *checker) begin() error {
	header := &c.in.header
	c.report.Recordings++
	c.strict = header.SHA256 == c.sum
	c.report.SameModule = c.report.SameModule && c.strict
	c.hidden = nil
	for _, name := range header.Redacted {
		c.hidden = append(c.hidden, strings.ToLower(name))
		if !slices.Contains(c.report.Redacted, name) {
			c.report.Redacted = append(c.report.Redacted, name)
		}
	}
	if err := c.close(); err != nil { // the recording before
		return err
	}
	c.vms, c.totals = map[int]*checkVM{}, recordingTotals{}
	profile, _ := ProfileByName(header.Profile) // another one would do: the recording answers
	config := Config{Wasm: c.wasm, Profile: profile, MemoryLimitPages: header.MemoryPages, Env: map[string]string{}}.withDefaults()
	for _, entry := range header.Env {
		name, value, ok := cutEnv(entry)
		if !ok {
			return c.in.errorf("header: env has %q, which is not NAME=value and a zero byte", clip(string(entry)))
		}
		config.Env[name] = value
	}
	timeout, _ := time.ParseDuration(header.CallTimeout)
	config.CallTimeout = timeout * slack
	c.host = &Host{config: config, clock: config.Clock}
	return c.load()
}

// slack is how much longer a call may take in a replay: other virtual machines' lines lie between its own.
const slack = 10

// load compiles the module and links whatever it imports.
func (c *checker) load() error {
	_, bounded := c.ctx.Deadline()
	config := &c.host.config
	p, err := newProgram(c.ctx, config, c.wasm, nil, bounded || config.CallTimeout > 0)
	if err != nil {
		return err
	}
	c.host.program.Store(p)
	if problem := exportProblem(exportNames(p.compiled)); problem != "" {
		return fmt.Errorf("%w: %s", ErrABI, problem)
	}
	if err := declaresTooMuch(p.compiled, config.MemoryLimitPages); err != nil {
		return err
	}
	return p.link(c.ctx)
}

// end compares the trailer with what has been read.
func (c *checker) end(l *recordedLine) error {
	for id := range c.vms {
		return c.in.errorf("the recording ends, but virtual machine %d has not", id)
	}
	if l.recordingTotals != c.totals {
		return c.in.errorf("the trailer counts %+v, the lines before it %+v", l.recordingTotals, c.totals)
	}
	return nil
}

// close ends what still runs.
func (c *checker) close() error {
	for _, m := range c.vms {
		m.stop()
	}
	c.vms = nil
	if c.host == nil {
		return nil
	}
	err := c.host.program.Load().close()
	c.host = nil
	return err
}
