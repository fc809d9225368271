package hostsim

import (
	"bufio"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"
)

// recordingFormat and recordingVersion begin every recording. The version goes up when an older Check would misread a new
// recording; Check reads all versions up to its own.
const (
	recordingFormat  = "hostsim-recording"
	recordingVersion = 1
)

// recordingHeader is the first line of a recording.
type recordingHeader struct {
	Format       string         `json:"format"`
	Version      int            `json:"version"`
	SHA256       string         `json:"wasm_sha256"`
	Size         int            `json:"wasm_size"`
	ABI          string         `json:"abi"`
	Profile      string         `json:"profile"`
	Workers      int            `json:"workers"`
	Seed         uint64         `json:"seed"`
	Clock        string         `json:"clock"` // virtual or real
	Started      string         `json:"started"`
	Name         recordedText   `json:"name"`
	RootID       recordedText   `json:"root_id"`
	VMID         recordedText   `json:"vm_id"`
	PluginConfig recordedText   `json:"plugin_config"`
	VMConfig     recordedText   `json:"vm_config"`
	Env          []recordedText `json:"env,omitempty"`
	HeadersStop  bool           `json:"allow_on_headers_stop_iteration,omitempty"`
	Policy       int            `json:"failure_policy"`
	Backoff      string         `json:"reload_backoff"`
	BufferLimit  int            `json:"buffer_limit"`
	MemoryPages  uint32         `json:"memory_limit_pages"`
	CallTimeout  string         `json:"call_timeout"`
	Redacted     []string       `json:"redacted,omitempty"`
}

// recordedText is bytes as a recording spells them.
type recordedText []byte

// MarshalJSON writes a string, or an object with base64 for what is not UTF-8.
func (t recordedText) MarshalJSON() ([]byte, error) { return appendText(nil, t), nil }

// UnmarshalJSON reads what MarshalJSON writes.
func (t *recordedText) UnmarshalJSON(raw []byte) error {
	data, err := recordedBytes(raw)
	*t = data
	return err
}

// RecordOptions changes what a Recorder writes. The zero value writes everything in clear.
type RecordOptions struct {
	// Redact names headers whose values are replaced by random letters and digits of the same length, the same for the same
	// value within one recording, wherever they appear as a header and, from 8 bytes on, in anything else that is recorded.
	// Bodies and configurations are searched for those values too but else stay as they are.
	Redact []string
}

// Recorder writes what happens between a Host and its module, one JSON object a line: each callback with its arguments and
// its result, each host call with its arguments, its status and what the host wrote, and what came from outside. Check
// replays it. Give it to a host as Config.Recorder; Host.Close ends the recording. One recorder may serve several hosts one
// after the other, which then share a file, but not two at once. Safe for concurrent use; its memory does not grow.
//
// A recording holds headers, bodies and configurations in clear: treat it as you treat those.
type Recorder struct {
	redaction *redaction
	options   RecordOptions

	mu      sync.Mutex
	out     *bufio.Writer
	line    uint64
	busy    bool
	err     error
	vms     int
	streams uint64
	totals  recordingTotals
}

// recordingTotals stand in the last line.
type recordingTotals struct {
	VMs       int    `json:"vms"`
	Callbacks uint64 `json:"callbacks"`
	HostCalls uint64 `json:"host_calls"`
}

// NewRecorder returns a recorder that writes to w, in pieces of 64 KiB. The caller closes w after Host.Close.
func NewRecorder(w io.Writer, o RecordOptions) *Recorder {
	return &Recorder{out: bufio.NewWriterSize(w, 64<<10), options: o, redaction: newRedaction(o.Redact)}
}

// Err is the first error of the writer, or nil. After one nothing more is written; Host.Close returns it too.
func (r *Recorder) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// begin writes the header for h.
func (r *Recorder) begin(h *Host) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.busy {
		return fmt.Errorf("%w: Recorder serves another host, which is not closed yet", ErrConfig)
	}
	r.busy, r.vms, r.streams, r.totals = true, 0, 0, recordingTotals{}
	c, p := &h.config, h.program.Load()
	header := recordingHeader{
		Format: recordingFormat, Version: recordingVersion, SHA256: hex.EncodeToString(p.sum[:]), Size: len(c.Wasm), ABI: p.abi,
		Profile: c.Profile.Name, Workers: c.Workers, Seed: c.Seed, Clock: "virtual",
		Started: c.Clock.Now().UTC().Format(time.RFC3339Nano),
		Name:    recordedText(c.Name), RootID: recordedText(c.RootID), VMID: recordedText(c.VMID), PluginConfig: c.PluginConfig,
		VMConfig: c.VMConfig, HeadersStop: c.AllowOnHeadersStopIteration, Policy: int(c.FailurePolicy),
		Backoff: c.ReloadBackoff.String(), BufferLimit: c.BufferLimit, MemoryPages: c.MemoryLimitPages,
		CallTimeout: c.CallTimeout.String(), Redacted: r.options.Redact,
	}
	if _, virtual := c.Clock.(*VirtualClock); !virtual {
		header.Clock = "real"
	}
	for _, entry := range environmentOf(c.Env) {
		header.Env = append(header.Env, recordedText(entry))
	}
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	r.write(append([]byte(`{"kind":"header",`), text[1:]...))
	return r.err
}

// end writes the last line.
func (r *Recorder) end() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.busy {
		return r.err
	}
	r.busy = false
	text, err := json.Marshal(r.totals)
	if err != nil {
		return err
	}
	r.write(append([]byte(`{"kind":"trailer",`), text[1:]...))
	if r.err == nil {
		r.err = r.wrap(r.out.Flush())
	}
	return r.err
}

// put writes one line.
func (r *Recorder) put(object []byte, callbacks, hostCalls uint64) {
	r.mu.Lock()
	r.totals.Callbacks += callbacks
	r.totals.HostCalls += hostCalls
	r.write(object)
	r.mu.Unlock()
}

// write adds the line's number to object, which begins with a brace, under the lock.
func (r *Recorder) write(object []byte) {
	if r.err != nil {
		return
	}
	r.line++
	var head [32]byte
	prefix := append(strconv.AppendUint(append(head[:0], `{"seq":`...), r.line, 10), ',')
	_, err1 := r.out.Write(prefix)
	_, err2 := r.out.Write(object[1:])
	r.err = r.wrap(errors.Join(err1, err2, r.out.WriteByte('\n')))
}

func (r *Recorder) wrap(err error) error {
	if err != nil {
		return fmt.Errorf("hostsim: recording: %w", err)
	}
	return nil
}
