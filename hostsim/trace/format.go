package trace

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// ErrFormat is wrapped by the error for a format that is unknown, or that cannot be told from the first line.
var ErrFormat = errors.New("trace: unknown format")

// ErrOptions is wrapped by the error for Options that cannot be meant.
var ErrOptions = errors.New("trace: options")

// Format names how a trace is written. docs/traces.md shows a row of each.
type Format string

// The formats. All are JSON, one value a line.
const (
	WEKA            Format = "weka"             // WEKA's Claude Code traces, delta-encoded: WEKAReader
	WEKAPlain       Format = "weka-plain"       // the same as published
	MooncakePlain   Format = "mooncake"         // Mooncake's published traces
	MooncakeCompact Format = "mooncake-compact" // the same with runs instead of ids, and sessions
	Qwen            Format = "qwen-bailian"     // the traces of Qwen's service on Bailian
	Groups          Format = "groups"           // lengths of RL rollouts, by group
	Chat            Format = "chat"             // conversations as OpenAI's chat API has them
	NeMoGym         Format = "nemo-gym"         // rollouts of NVIDIA's NeMo-Gym
	DecisionLog     Format = "decision-log"     // Pinwheel's own decision log
)

// layout is what the package knows about a format.
type layout struct {
	format Format
	// keys are those by which a first line of this format is told from the others.
	keys   []string
	reader func(*lines, Options) Reader
	writer func(*bufio.Writer, Options) Writer // nil: it can only be read
}

// layouts are in the order in which a first line is tried.
var layouts = []layout{
	{WEKA, []string{"id", "r"}, func(l *lines, _ Options) Reader { return newWEKAReader(l, decodeWEKA) },
		func(w *bufio.Writer, _ Options) Writer {
			return &wekaWriter{out: w, format: WEKA, names: writtenNames{}}
		}},
	{WEKAPlain, []string{"id", "requests"}, func(l *lines, _ Options) Reader { return newWEKAReader(l, decodeWEKAPlain) },
		func(w *bufio.Writer, _ Options) Writer {
			return &wekaWriter{out: w, format: WEKAPlain, names: writtenNames{}}
		}},
	{Qwen, []string{"chat_id", "hash_ids"}, func(l *lines, _ Options) Reader { return newInterleaved(l, &qwen{}) },
		func(w *bufio.Writer, _ Options) Writer {
			return newInterleavedWriter(w, Qwen, writeQwen)
		}},
	{MooncakePlain, []string{"timestamp", "input_length", "hash_ids"}, func(l *lines, _ Options) Reader { return newInterleaved(l, &mooncakePlain{}) },
		func(w *bufio.Writer, _ Options) Writer {
			return newInterleavedWriter(w, MooncakePlain, writeMooncakePlain)
		}},
	{MooncakeCompact, nil, func(l *lines, _ Options) Reader { return newInterleaved(l, mooncakeCompact{}) },
		func(w *bufio.Writer, _ Options) Writer {
			return newInterleavedWriter(w, MooncakeCompact, writeMooncakeCompact)
		}},
	{Chat, []string{"messages"}, func(l *lines, o Options) Reader { return newChatReader(l, o, decodeChat) },
		func(w *bufio.Writer, o Options) Writer { return &chatWriter{w, o.bytesPerToken(), writtenNames{}} }},
	{NeMoGym, []string{"responses_create_params", "response"}, func(l *lines, o Options) Reader { return newChatReader(l, o, decodeNeMoGym) }, nil},
	{DecisionLog, nil, func(l *lines, o Options) Reader { return newInterleaved(l, newDecisionLog(o)) },
		func(w *bufio.Writer, _ Options) Writer { return newInterleavedWriter(w, DecisionLog, writeDecision) }},
	{Groups, []string{"group", "prompt_len"}, func(l *lines, o Options) Reader { return newGroupReader(l, o) },
		func(w *bufio.Writer, _ Options) Writer {
			return &groupWriter{w, map[string]firstPrompt{}, writtenNames{}}
		}},
}

// Formats returns the names of all formats.
func Formats() []Format {
	var all []Format
	for _, l := range layouts {
		all = append(all, l.format)
	}
	return all
}

// BlockTokens returns the size of the format's blocks in tokens, or 0 where that is for Options to say.
func (f Format) BlockTokens() int {
	switch f {
	case WEKA, WEKAPlain:
		return WEKABlockTokens
	case MooncakePlain, MooncakeCompact:
		return MooncakeBlockTokens
	case Qwen:
		return QwenBlockTokens
	}
	return 0
}

// Options say what a trace itself does not. The zero value is the default.
type Options struct {
	// Format of the trace. Empty: as the first line looks.
	Format Format
	// BlockTokens is the size of a block, in tokens, where the format names no blocks of its own. Zero means
	// DefaultBlockTokens.
	BlockTokens int
	// BytesPerToken is how many bytes of a conversation's JSON text count as a token. Zero means DefaultBytesPerToken.
	BytesPerToken int
	// Log is what is assumed of a decision log's turns.
	Log LogAssumptions
}

// DefaultBytesPerToken is what hostsim's simulated replicas count, too: about what English text and code come to.
const DefaultBytesPerToken = 4

// DefaultBlockTokens is the size of a block where a trace has none and Options say nothing: vLLM's own default.
const DefaultBlockTokens = 16

func (o Options) blockTokens() int {
	if o.BlockTokens < 1 {
		return DefaultBlockTokens
	}
	return o.BlockTokens
}

func (o Options) bytesPerToken() int {
	if o.BytesPerToken < 1 {
		return DefaultBytesPerToken
	}
	return o.BytesPerToken
}

func (o Options) check() error {
	if o.BlockTokens < 0 || o.BlockTokens > maxTokens || o.BytesPerToken < 0 || o.BytesPerToken > maxTokens {
		return fmt.Errorf("%w: blocks of %d tokens, tokens of %d bytes; 1 to %d are allowed, 0 is the default",
			ErrOptions, o.BlockTokens, o.BytesPerToken, maxTokens)
	}
	return o.Log.check()
}

// byteOrderMark is what some editors put before UTF-8.
const byteOrderMark = "\xef\xbb\xbf"

// Open returns a reader of the trace in r, compressed by gzip or not, and its format: the one of o, or the one that the
// first line that is not blank looks like. An empty trace of no given format is io.ErrUnexpectedEOF. The reader takes
// one line at a time; what it holds beside that is said at each format.
func Open(r io.Reader, o Options) (Reader, Format, error) {
	if err := o.check(); err != nil {
		return nil, "", err
	}
	in := bufio.NewReaderSize(r, 64<<10)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return nil, "", fmt.Errorf("trace: %w", err)
		}
		in = bufio.NewReaderSize(unzipped, 64<<10)
	}
	if mark, _ := in.Peek(len(byteOrderMark)); string(mark) == byteOrderMark {
		_, _ = in.Discard(len(byteOrderMark)) // they are there
	}
	l := &lines{in: in}
	if o.Format == "" {
		var err error
		if o.Format, err = detect(l); err != nil {
			return nil, "", err
		}
	}
	i := slices.IndexFunc(layouts, func(l layout) bool { return l.format == o.Format })
	if i < 0 {
		return nil, "", fmt.Errorf("%w %q: choose one of %s", ErrFormat, o.Format, formatList())
	}
	return layouts[i].reader(l, o), o.Format, nil
}

// detect reads the first line and puts it back.
func detect(l *lines) (Format, error) {
	// A gateway's log has other lines, too, and words of its own before the JSON.
	if head, _ := l.in.Peek(64 << 10); findDecision(head) >= 0 {
		return DecisionLog, nil
	}
	text, err := l.next()
	switch {
	case errors.Is(err, io.EOF):
		return "", fmt.Errorf("trace: there is no line to tell the format from: %w", io.ErrUnexpectedEOF)
	case err != nil:
		return "", err
	}
	line := l.number
	l.number = line - 1
	l.in = bufio.NewReaderSize(io.MultiReader(bytes.NewReader(append(bytes.Clone(text), '\n')), l.in), 64<<10)
	text = bytes.TrimSpace(text)
	if text[0] == '[' {
		return MooncakeCompact, nil
	}
	var keys map[string]json.RawMessage
	if err := json.Unmarshal(text, &keys); err != nil {
		return "", fmt.Errorf("%w: line %d is neither a JSON object nor an array; give one of %s", ErrFormat, line, formatList())
	}
	for _, known := range layouts {
		if len(known.keys) > 0 && !slices.ContainsFunc(known.keys, func(k string) bool { return keys[k] == nil }) {
			return known.format, nil
		}
	}
	return "", fmt.Errorf("%w: line %d has the keys %.60q; give one of %s", ErrFormat, line,
		strings.Join(slices.Sorted(maps.Keys(keys)), ", "), formatList())
}

func formatList() string {
	var names []string
	for _, f := range Formats() {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}
