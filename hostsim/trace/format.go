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

// Format names how a trace is written. docs/traces.md shows a row of each.
type Format string

// The formats. All are JSON, one value a line.
const (
	WEKA            Format = "weka"             // WEKA's Claude Code traces, delta-encoded: WEKAReader
	MooncakePlain   Format = "mooncake"         // Mooncake's published traces
	MooncakeCompact Format = "mooncake-compact" // the same with runs instead of ids, and sessions
	Groups          Format = "groups"           // lengths of RL rollouts, by group
)

// layout is what the package knows about a format.
type layout struct {
	format Format
	// keys are those by which a first line of this format is told from the others.
	keys   []string
	reader func(*lines, Options) Reader
}

// layouts are in the order in which a first line is tried.
var layouts = []layout{
	{WEKA, []string{"id", "r"}, func(l *lines, _ Options) Reader { return newWEKAReader(l) }},
	{MooncakePlain, []string{"timestamp", "hash_ids"}, func(l *lines, _ Options) Reader { return newInterleaved(l, &mooncakePlain{}) }},
	{MooncakeCompact, nil, func(l *lines, _ Options) Reader { return newInterleaved(l, mooncakeCompact{}) }},
	{Groups, []string{"group", "prompt_len"}, func(l *lines, o Options) Reader { return newGroupReader(l, o) }},
}

// Formats returns the names of all formats.
func Formats() []Format {
	var all []Format
	for _, l := range layouts {
		all = append(all, l.format)
	}
	return all
}

// Options say what a trace itself does not. The zero value is the default.
type Options struct {
	// Format of the trace. Empty: as the first line looks.
	Format Format
	// BlockTokens is the size of a block, in tokens, where the format names no blocks of its own. Zero means DefaultBlockTokens.
	BlockTokens int
}

// DefaultBlockTokens is the size of a block where a trace has none and Options say nothing: vLLM's own default.
const DefaultBlockTokens = 16

func (o Options) blockTokens() int {
	if o.BlockTokens < 1 {
		return DefaultBlockTokens
	}
	return o.BlockTokens
}

// Open returns a reader of the trace in r, compressed by gzip or not, and its format: the one of o, or the one that the
// first line that is not blank looks like. An empty trace of no given format is io.ErrUnexpectedEOF. The reader takes
// one line at a time; what it holds beside that is said at each format.
func Open(r io.Reader, o Options) (Reader, Format, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	if magic, _ := in.Peek(2); bytes.Equal(magic, []byte{0x1f, 0x8b}) {
		unzipped, err := gzip.NewReader(in)
		if err != nil {
			return nil, "", fmt.Errorf("trace: %w", err)
		}
		in = bufio.NewReaderSize(unzipped, 64<<10)
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
	names := make([]string, len(layouts))
	for i, l := range layouts {
		names[i] = string(l.format)
	}
	return strings.Join(names, ", ")
}
