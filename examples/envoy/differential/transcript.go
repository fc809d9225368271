package differential

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// transcript collects what one exchange causes, from several goroutines, in the form of a recording.
type transcript struct {
	mu      sync.Mutex
	step    [len(sources)][]line
	changed chan struct{} // has room for one

	names    map[string]string // "THREAD id" of a context, "call id" or "queue id" to its name
	streams  map[string]int    // by thread
	numbers  map[string]int    // the last one given, by kind: call or queue
	replacer *strings.Replacer // addresses and cluster names to their meaning
}

// sources are where lines come from, in the order of a recording.
var sources = [...]string{"plugin", "other", "upstream", "client", "gateway"}

type line struct {
	text string
	data []byte // of a body, which arrives in any pieces
}

func newTranscript(meanings ...string) *transcript {
	return &transcript{changed: make(chan struct{}, 1), names: map[string]string{}, streams: map[string]int{}, numbers: map[string]int{},
		replacer: strings.NewReplacer(meanings...)}
}

func (t *transcript) add(source string, l line) {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.Index(sources[:], source)
	lines := t.step[i]
	if n := len(lines); l.data != nil && n > 0 && lines[n-1].data != nil {
		lines[n-1].data = append(lines[n-1].data, l.data...)
	} else {
		t.step[i] = append(lines, l)
	}
	select {
	case t.changed <- struct{}{}:
	default:
	}
}

// wire notes what a peer got: a line of text, or part of a body.
func (t *transcript) wire(actor, text string) {
	t.add(actor, line{text: actor + " < " + t.replacer.Replace(text)})
}
func (t *transcript) body(actor string, data []byte) {
	t.add(actor, line{text: actor + " < data ", data: slices.Clone(data)})
}

// plugin notes a line of the probe on a thread, which may be empty.
func (t *transcript) plugin(thread, text string) {
	t.mu.Lock()
	text = withoutTimes(t.replacer.Replace(t.named(thread, text)))
	t.mu.Unlock()
	if thread != "" {
		text = thread + ": " + text
	}
	t.add("plugin", line{text: text})
}

// log notes a line of the probe, of the main thread only where the exchange asks for it.
func (e *Exchange) log(t *transcript, main bool, text string) {
	switch {
	case main && e.allThreads():
		t.plugin("main", text)
	case e.allThreads():
		t.plugin("worker", text)
	case !main:
		t.plugin("", text)
	}
}

func withoutTimes(s string) string {
	return serviceTime.ReplaceAllString(date.ReplaceAllString(s, ""), "$1")
}

// Headers in which Envoy tells a time: one that it adds to a response that goes out, one in the answer to a call-out.
var (
	date        = regexp.MustCompile(`, date=\w+, \d+ \w+ \d+ [\d:]+ GMT`)
	serviceTime = regexp.MustCompile(`(x-envoy-upstream-service-time=)\d+`)
)

// named replaces the ids in a line of the probe.
func (t *transcript) named(thread, text string) string {
	words := strings.Split(text, " ")
	switch {
	case len(words) > 2 && words[0] == ">":
		t.nameContexts(thread, words)
		switch {
		case (words[1] == "http_call_response" || strings.HasPrefix(words[1], "grpc_")) && len(words) > 3:
			words[3] = t.names["call "+words[3]]
		case words[1] == "queue_ready" && len(words) > 3:
			words[3] = t.names["queue "+words[3]]
		}
	case slices.Contains(callouts, words[0]) && len(words) > 2 && words[len(words)-2] == "0":
		t.nameLast("call", words)
	case strings.HasPrefix(text, "qregister ") || strings.HasPrefix(text, "qresolve ") || strings.HasPrefix(text, "raw register_shared_queue "):
		if words[len(words)-2] == "0" {
			t.nameLast("queue", words)
		}
	}
	return strings.Join(words, " ")
}

// callouts are the operations of the probe that end in a call-out's id.
var callouts = []string{"call", "httpcall", "grpccall", "grpcstream"}

// nameLast names the call-out or the queue whose id is the last word.
func (t *transcript) nameLast(kind string, words []string) {
	last := &words[len(words)-1]
	id := kind + " " + *last
	if t.names[id] == "" {
		t.numbers[kind]++
		t.names[id] = fmt.Sprint(kind, t.numbers[kind])
	}
	*last = t.names[id]
}

// nameContexts names the context that a callback is about, and for context_create its parent.
func (t *transcript) nameContexts(thread string, words []string) {
	id := thread + " " + words[2]
	if words[1] == "context_create" && len(words) > 3 {
		name := "root"
		if words[3] != "0" {
			t.streams[thread]++
			name = "stream"
			if n := t.streams[thread]; n > 1 {
				name = fmt.Sprintf("stream%d", n)
			}
			words[3] = t.names[thread+" "+words[3]]
		}
		t.names[id] = name
	}
	if name := t.names[id]; name != "" {
		words[2] = name
	}
}

// caused returns the lines since the last step began.
func (t *transcript) caused() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var out []string
	for _, lines := range t.step {
		for _, l := range lines {
			out = append(out, l.text+brief(l.data))
		}
	}
	return out
}

// next begins a step.
func (t *transcript) next() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.step {
		t.step[i] = nil
	}
}

// brief shows data in one line: short as it is, long by its length.
func brief(data []byte) string {
	s := string(data)
	if len(s) > 64 {
		s = fmt.Sprintf("%s...%s (%d bytes)", s[:8], s[len(s)-8:], len(s))
	}
	return strings.NewReplacer("\r", "\\r", "\n", "\\n").Replace(s)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
