package trace

import (
	_ "embed"
	"strings"
)

//go:embed testdata/weka_cc_24.ci.compact.jsonl
var bundled string

// BundledName says what Bundled is and where it comes from, for a report's header.
const BundledName = "weka_cc_24.ci (callanjfox/kv-cache-tester @94f6046, Apache-2.0)"

// Bundled returns a reader of the trace that is part of every build: 24 anonymised Claude Code sessions of 5 to 78
// turns, 736 turns in all. testdata/NOTICE names its source and licence. Each call returns a reader of its own.
func Bundled() *WEKAReader { return NewWEKAReader(strings.NewReader(bundled)) }
