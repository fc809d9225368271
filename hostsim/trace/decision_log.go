package trace

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"time"
)

// ErrNoDecision is wrapped by the error for a decision log without a decision.
var ErrNoDecision = errors.New("trace: not a decision log")

// decisionKey is what a line with a decision of Pinwheel's has, and decisionMark its place.
var (
	decisionKey  = []byte(`"pinwheel"`)
	decisionMark = regexp.MustCompile(`"pinwheel"\s*:\s*"decision"`)
)

// findDecision returns where a text has decisionMark, or -1. Without decisionKey, as in most lines of a gateway, it costs a
// search for these bytes.
func findDecision(text []byte) int {
	from := bytes.Index(text, decisionKey)
	if from < 0 {
		return -1
	}
	if at := decisionMark.FindIndex(text[from:]); at != nil {
		return from + at[0]
	}
	return -1
}

// parseDecision reads the object that has decisionMark at a place: it begins at the last brace before that, or, where that is
// one of an object inside it, at the line's first. What follows it is the gateway's.
func parseDecision(text []byte, mark int) (decisionRow, error) {
	failed := errors.New("not in a JSON object")
	for _, begin := range []int{bytes.IndexByte(text[:mark], '{'), bytes.LastIndexByte(text[:mark], '{')} {
		if begin < 0 {
			continue
		}
		var row decisionRow
		if err := json.NewDecoder(bytes.NewReader(text[begin:])).Decode(&row); err != nil {
			failed = err
		} else if row.Pinwheel == "decision" {
			return row, nil
		}
	}
	return decisionRow{}, failed
}

// LogAssumptions are what a decision log does not tell and a replay has to know. The zero value of each is its default.
// They change what a replay shows: of its results trust those most in which these play no part, such as the sessions and
// turns of a replica.
type LogAssumptions struct {
	// FirstPrompt is the length of a session's first prompt, in tokens. Default: 11,400, as in the campaign of Generate.
	FirstPrompt int
	// PerTurn is by how many tokens each prompt is longer than the one before, what was generated included. Default: 2,520.
	PerTurn int
	// Output is how many tokens are generated in a turn. Default: 245.
	Output int
	// System is how many tokens of the first prompt are the same in all sessions. Default: 0.
	System int
	// API is how long an answer took. The rest of the time until the session's next line is its pause. Default: 5 s.
	API time.Duration
}

// WithDefaults returns the assumptions with the defaults in place of zeros.
func (a LogAssumptions) WithDefaults() LogAssumptions {
	for _, d := range []struct {
		field *int
		value int
	}{{&a.FirstPrompt, 11_400}, {&a.PerTurn, campaignGrowth}, {&a.Output, campaignOutput}} {
		if *d.field == 0 {
			*d.field = d.value
		}
	}
	if a.API == 0 {
		a.API = 5 * time.Second
	}
	return a
}

func (a LogAssumptions) check() error {
	a = a.WithDefaults()
	if a.FirstPrompt < 1 || a.FirstPrompt > maxTokens/2 || a.Output < 0 || a.PerTurn < a.Output || a.PerTurn > maxTokens/2 ||
		a.System < 0 || a.System > a.FirstPrompt || a.API < 0 || a.API > time.Hour {
		return fmt.Errorf("%w: a first prompt of %d tokens (%d of all sessions), %d more and %d generated a turn, answers of %v; "+
			"prompts go from 1 token, of all sessions are at most as many, generated at most as many as a prompt grows by, answers take up to an hour",
			ErrOptions, a.FirstPrompt, a.System, a.PerTurn, a.Output, a.API)
	}
	return nil
}

// decisionLog reads Pinwheel's decision log, as it is or as the gateway's log has it among other lines, which are passed
// over:
//
//	... wasm log pinwheel: {"pinwheel":"decision","time":"2026-11-30T05:02:06.959Z","pool":"default","session":"e9d10d90",
//	"reason":"placed","replica":"10.0.0.2:8000","open_sessions":{...}}
//
// A line is a turn, except those of the reason followed: they tell of a turn that another line has told of. A session is
// named POOL/HASH; requests without one (null or "") are sessions of one turn each. Tokens, blocks and pauses are LogAssumptions.
// Workers may write a line before one that is older: it counts as of the same time.
type decisionLog struct {
	assume  LogAssumptions
	tokens  int
	first   time.Time
	seen    map[string]sentTurns
	keyless int
	found   bool // a line with a decision, good or bad
}

// sentTurns is what is known of a session so far.
type sentTurns struct {
	turns int
	last  time.Duration
}

func newDecisionLog(o Options) *decisionLog {
	return &decisionLog{assume: o.Log.WithDefaults(), tokens: o.blockTokens(), seen: map[string]sentTurns{}}
}

func (d *decisionLog) blockTokens() int { return d.tokens }

func (d *decisionLog) decode(text []byte) (request, error) {
	mark := findDecision(text)
	if mark < 0 {
		return request{}, errNoRequest
	}
	d.found = true
	row, err := parseDecision(text, mark)
	if err != nil {
		return request{}, err
	}
	if row.Time.IsZero() || row.Reason == "" {
		return request{}, errors.New("time, reason: missing")
	}
	if row.Reason == "followed" {
		return request{}, errNoRequest
	}
	first := d.first
	if first.IsZero() {
		first = row.Time
	}
	at, err := seconds(max(0, row.Time.Sub(first).Seconds()))
	if err != nil {
		return request{}, fmt.Errorf("time: %w", err)
	}
	q := request{at: at}
	if row.Session == "" {
		d.keyless++
		q.session = row.Pool + "/keyless " + strconv.Itoa(d.keyless)
	} else {
		q.session = row.Pool + "/" + row.Session
	}
	before := d.seen[q.session]
	q.at = max(at, before.last)
	q.turn = Turn{Input: d.assume.FirstPrompt + before.turns*d.assume.PerTurn, Output: d.assume.Output, API: d.assume.API}
	if err := checkTokens(q.turn.Input, q.turn.Output); err != nil {
		return request{}, err
	}
	d.first, d.seen[q.session] = first, sentTurns{before.turns + 1, q.at}
	return q, nil
}

// none tells an empty trace from a text that is something else.
func (d *decisionLog) none(lines int) error {
	if d.found {
		return io.EOF
	}
	return fmt.Errorf("%w: %d lines, none of them a decision of the plugin's; it writes them with \"decision_log\": {\"enabled\": true}",
		ErrNoDecision, lines)
}

// finish fills in what is known when a session has all its turns.
func (d *decisionLog) finish(s *Session, number int) {
	s.System, s.Replays = d.assume.System, true
	for i := 1; i < len(s.Turns); i++ {
		s.Turns[i].Think = max(0, s.Turns[i].At-s.Turns[i-1].At-d.assume.API)
	}
	nameBlocks(s, d.assume.System, 0, uint64(number)+1)
}
