package hostsim

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// ErrRecording is wrapped by every error about a recording that cannot be read: one that is cut off, damaged, not a
// recording, or of a version that this hostsim does not know.
var ErrRecording = errors.New("hostsim: unreadable recording")

// maxLine bounds one line of a recording, in bytes: what one host call can pass and be answered.
const maxLine = 256 << 20

// The kinds of lines.
const (
	kindHeader   = "header"
	kindVM       = "vm"
	kindCallback = "callback"
	kindCall     = "call"
	kindEnd      = "end"
	kindVMEnd    = "vm_end"
	kindEvent    = "event"
	kindTrailer  = "trailer"
)

// recordedLine is one line but the first, or one entry of a host call's "during". A pointer is nil where the field is absent.
type recordedLine struct {
	Seq    uint64                     `json:"seq"`
	Kind   string                     `json:"kind"`
	VM     *int                       `json:"vm"`
	Name   string                     `json:"name"`
	Args   json.RawMessage            `json:"args"`
	Status json.RawMessage            `json:"status"`
	Result *uint64                    `json:"result"`
	Out    map[string]json.RawMessage `json:"out"`
	During []recordedLine             `json:"during"`
	Trap   *string                    `json:"trap"`

	// Deadline is true where Config.CallTimeout ended a callback; AllocatorSkipped, where a fault took the allocator's place.
	Deadline         bool `json:"deadline"`
	AllocatorSkipped bool `json:"allocator_skipped"`

	Worker       int    `json:"worker"`
	Generation   uint64 `json:"generation"`
	Context      uint32 `json:"context"`
	MemorySize   uint32 `json:"memory_size"`
	MemorySHA256 string `json:"memory_sha256"`

	recordingTotals
}

// recordingReader reads recordings line by line. Several may follow each other in one stream.
type recordingReader struct {
	in     *bufio.Reader
	line   int    // of the last line read, from 1
	seq    uint64 // its number
	header recordingHeader
	open   bool // between header and trailer
	long   []byte
}

func newRecordingReader(r io.Reader) *recordingReader {
	return &recordingReader{in: bufio.NewReaderSize(r, 64<<10)}
}

func (r *recordingReader) errorf(format string, args ...any) error {
	return fmt.Errorf("%w: line %d: "+format, append([]any{ErrRecording, r.line}, args...)...)
}

// text reads one line, which is valid until the next.
func (r *recordingReader) text() ([]byte, error) {
	r.line++
	r.long = r.long[:0]
	for {
		part, err := r.in.ReadSlice('\n')
		if len(r.long)+len(part) > maxLine {
			return nil, r.errorf("longer than %d MiB", maxLine>>20)
		}
		switch {
		case err == nil && len(r.long) == 0:
			return part, nil
		case errors.Is(err, io.EOF) && len(r.long)+len(part) == 0:
			return nil, io.EOF
		case errors.Is(err, io.EOF):
			if r.line > 1 {
				return nil, r.errorf("cut off in the middle: the recorder was not closed")
			}
			return append(r.long, part...), nil
		case err != nil && !errors.Is(err, bufio.ErrBufferFull):
			return nil, r.errorf("%w", err)
		}
		r.long = append(r.long, part...)
		if err == nil {
			return r.long, nil
		}
	}
}

// next reads the next line. At a header it sets r.header. The error is io.EOF at the end of a complete recording.
func (r *recordingReader) next() (*recordedLine, error) {
	text, err := r.text()
	switch {
	case err == io.EOF && r.line == 1:
		return nil, r.errorf("the file is empty")
	case err == io.EOF && r.open:
		return nil, r.errorf("cut off: the trailer is missing, so the recorder was not closed")
	case err != nil:
		return nil, err
	}
	if !r.open {
		return r.readHeader(text)
	}
	l := &recordedLine{}
	if err := json.Unmarshal(text, l); err != nil {
		return nil, r.errorf("not JSON as hostsim writes it: %w", err)
	}
	if l.Seq != r.seq+1 {
		return nil, r.errorf("number %d follows %d: lines are missing or out of order", l.Seq, r.seq)
	}
	r.seq = l.Seq
	if err := l.check(); err != nil {
		return nil, r.errorf("%w", err)
	}
	r.open = l.Kind != kindTrailer
	return l, nil
}

func (r *recordingReader) readHeader(text []byte) (*recordedLine, error) {
	var first struct {
		Seq  uint64 `json:"seq"`
		Kind string `json:"kind"`
		recordingHeader
	}
	// What a newer version has changed must not hide that it is newer.
	var known struct {
		Format  string `json:"format"`
		Version int    `json:"version"`
	}
	if err := json.Unmarshal(text, &known); err != nil || known.Format != recordingFormat {
		return nil, r.errorf(`not a recording of hostsim, whose first line begins {"seq":1,"kind":"header","format":"%s": %s`,
			recordingFormat, clip(string(bytes.ToValidUTF8(bytes.TrimSpace(text[:min(len(text), 80)]), []byte("?")))))
	}
	if known.Version < 1 || known.Version > recordingVersion {
		return nil, r.errorf("version %d: this hostsim reads up to %d", known.Version, recordingVersion)
	}
	if err := json.Unmarshal(text, &first); err != nil {
		return nil, r.errorf("header: %w", err)
	}
	if timeout, err := time.ParseDuration(first.CallTimeout); err != nil || timeout < 0 {
		return nil, r.errorf("header: call_timeout %q is not a duration of 0 or more", clip(first.CallTimeout))
	}
	if first.MemoryPages < 1 || first.MemoryPages > 65536 {
		return nil, r.errorf("header: memory_limit_pages is %d, allowed are 1 to 65536", first.MemoryPages)
	}
	r.open, r.seq, r.header = true, first.Seq, first.recordingHeader
	return &recordedLine{Kind: kindHeader}, nil
}

// check finds fields that are missing.
func (l *recordedLine) check() error {
	switch l.Kind {
	case kindEvent, kindTrailer:
		return nil
	case kindVM, kindCallback, kindCall, kindEnd, kindVMEnd:
	default:
		return fmt.Errorf("kind %q is not known", clip(l.Kind))
	}
	if l.VM == nil || *l.VM < 0 {
		return fmt.Errorf("kind %s without its vm", l.Kind)
	}
	if (l.Kind == kindCallback || l.Kind == kindCall) && (l.Name == "" || len(l.Args) == 0) {
		return fmt.Errorf("kind %s without name or args", l.Kind)
	}
	for i := range l.During {
		if err := l.During[i].check(); err != nil {
			return fmt.Errorf("during: %w", err)
		}
	}
	return nil
}

// callbackArgs are the numbers of a callback.
func (l *recordedLine) callbackArgs() ([]uint64, error) {
	var args []uint64
	if err := json.Unmarshal(l.Args, &args); err != nil {
		return nil, fmt.Errorf("args of callback %s: %w", clip(l.Name), err)
	}
	return args, nil
}

// answer is what the host call returned to the module.
func (l *recordedLine) answer() (uint64, error) {
	switch {
	case l.Result != nil:
		return *l.Result, nil
	case len(l.Status) > 0:
		st, err := recordedStatus(l.Status)
		return uint64(st), err
	}
	return 0, nil
}
