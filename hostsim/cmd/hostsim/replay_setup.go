package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replay"
)

// setup says what is replayed, for a reader of the report.
func (r *replayRun) setup() []replay.Fact {
	f, e := r.flags, r.engine
	facts := []replay.Fact{
		{Name: "trace", Value: fmt.Sprintf("%s: %s, %s", r.source.name, counted(r.source.sessions, "session"), counted(r.source.turns, "turn"))},
		{Name: "fleet", Value: fmt.Sprintf("%s, each %s", counted(f.replicas, "replica"), f.server())},
		{Name: "engine", Value: fmt.Sprintf("pool %s tokens, block %s, step %s tokens, %s sequences", thousands(e.Blocks*e.BlockTokens),
			thousands(e.BlockTokens), thousands(e.MaxBatchedTokens), thousands(e.MaxSequences))},
		{Name: "load", Value: r.load()},
	}
	if text := r.configuration(); text != "" {
		facts = append(facts, replay.Fact{Name: "configuration", Value: text})
	}
	if f.keepSessions {
		facts = append(facts, replay.Fact{Name: "sessions", Value: "never released"})
	}
	if f.overhead != replay.DefaultOverhead {
		facts = append(facts, replay.Fact{Name: "overhead", Value: f.overhead.String() + " a turn"})
	}
	if r.wasm != nil && f.workers != replay.DefaultWorkers {
		facts = append(facts, replay.Fact{Name: "workers", Value: fmt.Sprintf("%d a gateway", f.workers)})
	}
	if f.gateways > 1 {
		facts = append(facts, replay.Fact{Name: "gateways", Value: fmt.Sprintf("%d, turns dealt %s", f.gateways, f.deal)})
	}
	if r.agreed.byEtcd() && r.wasm != nil {
		facts = append(facts, replay.Fact{Name: "agreement", Value: fmt.Sprintf("etcd, answers after %v", f.etcdLatency)})
	}
	if f.clients > 1 {
		facts = append(facts, replay.Fact{Name: "clients", Value: fmt.Sprint(f.clients)})
	}
	if len(r.events) > 0 {
		facts = append(facts, replay.Fact{Name: "events", Value: r.happenings()})
	}
	return append(facts, r.notes()...)
}

// notes say what was asked for and does nothing, and what of the trace is not played.
func (r *replayRun) notes() (facts []replay.Fact) {
	f, e, s := r.flags, r.engine, r.source
	note := func(format string, args ...any) {
		facts = append(facts, replay.Fact{Name: "note", Value: fmt.Sprintf(format, args...)})
	}
	if f.sessions > s.sessions {
		note("--sessions %d is more than the trace has", f.sessions)
	}
	if f.gateways == 1 && f.deal != string(replay.DealRoundRobin) {
		note("--deal %s does nothing with one gateway", f.deal)
	}
	if !r.agreed.byEtcd() || r.wasm == nil {
		if f.etcdLatency != replay.DefaultEtcdLatency {
			note("--etcd-latency does nothing: no gateway asks etcd")
		}
		if slices.ContainsFunc(r.events, func(e replay.Event) bool { return e.Kind.OfEtcd() }) {
			note("events of etcd do nothing: no gateway asks it")
		}
	}
	if s.tooLong > 0 {
		facts = append(facts, replay.Fact{Name: "too long", Value: fmt.Sprintf("%d of %s: prompt and answer are more than the KV pool of %s tokens, and nobody serves them",
			s.tooLong, counted(s.turns, "turn"), thousands(e.Blocks*e.BlockTokens))})
	}
	return facts
}

// mostEvents are named in a report's head; a schedule may have thousands.
const mostEvents = 8

func (r *replayRun) happenings() string {
	var texts []string
	for _, e := range r.events[:min(len(r.events), mostEvents)] {
		texts = append(texts, e.String())
	}
	if more := len(r.events) - mostEvents; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}

// configuration names the file of --config, or is its text: on one line, cut, and without secrets, as reports are shown
// around.
func (r *replayRun) configuration() string {
	if text := strings.TrimSpace(r.flags.config); text == "" || text[0] != '{' {
		return text
	}
	var config any
	if json.Unmarshal(r.config, &config) != nil {
		return "given, but no JSON" // baselines do not read it
	}
	text, err := json.Marshal(withoutSecrets(config))
	if err != nil {
		return err.Error()
	}
	const most = 200
	if s := []rune(string(text)); len(s) > most {
		return string(s[:most]) + "..."
	}
	return string(text)
}

// withoutSecrets changes v.
func withoutSecrets(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for key := range v {
			if key == "secret" || key == "password" {
				v[key] = "***"
			}
			v[key] = withoutSecrets(v[key])
		}
	case []any:
		for i := range v {
			v[i] = withoutSecrets(v[i])
		}
	}
	return v
}

func (r *replayRun) load() string {
	f := r.flags
	open := "all sessions at once"
	switch {
	case f.concurrency > 0:
		open = counted(f.concurrency, "session") + " at once"
	case f.advise:
		open = "sessions at once as below"
	}
	switch {
	case f.openLoop && !r.source.arrivals:
		return open + ", no times are recorded: a turn follows the answer to the one before"
	case f.openLoop && f.timeScale != 1:
		return fmt.Sprintf("%s, turns when recorded x %v", open, f.timeScale)
	case f.openLoop:
		return open + ", turns when recorded"
	case f.think == string(replay.ThinkRL):
		return open + ", pauses drawn as an RL sandbox's (an assumption)"
	case f.think == string(replay.ThinkNone) || f.thinkCap == 0:
		return open + ", no pauses"
	case !r.source.pauses && r.source.arrivals:
		return open + ", no pauses are recorded; arrivals are not played: --open-loop plays them"
	case !r.source.pauses:
		return open + ", no pauses are recorded"
	}
	pauses := fmt.Sprintf("%s, recorded pauses of at most %s", open, strings.Replace(f.thinkCap.String(), "m0s", "m", 1))
	if f.timeScale != 1 {
		pauses += fmt.Sprintf(" x %v", f.timeScale)
	}
	return pauses
}
