package plugin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim"
	"github.com/pinwheel-proxy/pinwheel/hostsim/hosttest"
)

// decisionLine is one line of the decision log.
type decisionLine struct {
	Pinwheel string         `json:"pinwheel"`
	Time     time.Time      `json:"time"`
	Pool     string         `json:"pool"`
	Session  *string        `json:"session"`
	Reason   string         `json:"reason"`
	Replica  *string        `json:"replica"`
	Open     map[string]int `json:"open_sessions"`
}

// decisionLines reads the decision log; a line of it that is not JSON, or has
// other keys, fails.
func (g *gateway) decisionLines() (lines []decisionLine, levels []hostsim.LogLevel) {
	g.t.Helper()
	for _, e := range g.Logs() {
		if !strings.Contains(e.Message, `"pinwheel":"decision"`) {
			continue
		}
		d := json.NewDecoder(strings.NewReader(e.Message))
		d.DisallowUnknownFields()
		var l decisionLine
		if err := d.Decode(&l); err != nil || d.More() || strings.Contains(e.Message, "\n") {
			g.t.Errorf("%v in %q", err, e.Message)
		}
		lines, levels = append(lines, l), append(levels, e.Level)
	}
	return lines, levels
}

func TestDecisionLog(t *testing.T) {
	g := startGateway(t, 2, twoReplicas+`,"session":{"max_sessions":2},"decision_log":{"enabled":true}`)
	var want []result
	for _, id := range []string{"a", "a", `"b\` + "\n\xff", "", strings.Repeat("x", 300), "full", "a"} {
		g.Advance(time.Millisecond)
		want = append(want, g.turn(id))
	}
	lines, levels := g.decisionLines()
	if len(lines) != len(want) {
		t.Fatalf("%d lines for %d turns", len(lines), len(want))
	}
	names := map[string]bool{}
	for i, l := range lines {
		w := want[i]
		if l.Pinwheel != "decision" || l.Pool != "default" || l.Reason != w.reason || l.Replica == nil || *l.Replica != w.replica || levels[i] != hostsim.LogInfo {
			t.Errorf("line %d is %+v at %s, the client saw %s on %s", i, l, levels[i], w.reason, w.replica)
		}
		if at := hostsim.VirtualEpoch.Add(time.Duration(i+1) * time.Millisecond); !l.Time.Equal(at) {
			t.Errorf("line %d: time %v, want %v", i, l.Time, at)
		}
		if keyless := w.reason == "keyless" || w.reason == "oversized"; keyless != (l.Session == nil) {
			t.Errorf("line %d: session %v of a %s turn", i, l.Session, w.reason)
		} else if !keyless {
			names[*l.Session] = true
			if len(*l.Session) != 8 {
				t.Errorf("session %q, want eight digits", *l.Session)
			}
		}
		if (l.Open == nil) != (w.reason == "pinned") {
			t.Errorf("line %d: open sessions %v of a %s turn", i, l.Open, w.reason)
		}
	}
	if len(names) != 3 {
		t.Errorf("three sessions have %d names", len(names))
	}
	if open := lines[2].Open; open["10.0.0.1:8000"] != 1 || open["10.0.0.2:8000"] != 1 {
		t.Errorf("open sessions %v at the second placement, want 1 and 1", open)
	}
}

func TestDecisionLogWithoutReplica(t *testing.T) {
	g := startGateway(t, 2, `"replicas":[],"decision_log":{"enabled":true}`)
	g.turn("a")
	if lines, _ := g.decisionLines(); len(lines) != 1 || lines[0].Replica != nil || lines[0].Reason != "no_replica" {
		t.Errorf("lines %+v", lines)
	}
}

func TestDecisionLogLevels(t *testing.T) {
	for level, want := range map[string]hostsim.LogLevel{"debug": hostsim.LogDebug, "info": hostsim.LogInfo, "warn": hostsim.LogWarn} {
		g := startWith(t, hosttest.Options{Workers: 2, Adjust: func(*hostsim.Config) {}}, twoReplicas+`,"decision_log":{"enabled":true,"level":"`+level+`"}`)
		g.turn("a")
		if _, levels := g.decisionLines(); len(levels) != 1 || levels[0] != want {
			t.Errorf("level %s: logged at %v", level, levels)
		}
	}
	g := startGateway(t, 2, twoReplicas)
	if g.turn("a"); len(g.Logs()) != 0 {
		t.Errorf("without configuration: %v", g.Logs())
	}
}

// A sample of the log holds all turns of a session or none.
func TestDecisionLogSamples(t *testing.T) {
	const sessions, turns = 400, 3
	for _, sample := range []float64{0, 0.25, 1} {
		g := startGateway(t, 2, twoReplicas+fmt.Sprintf(`,"decision_log":{"enabled":true,"sample":%g}`, sample))
		for range turns {
			for i := range sessions {
				g.turn(fmt.Sprint("s", i))
				g.turn("")
			}
		}
		bySession, keyless := map[string]int{}, 0
		lines, _ := g.decisionLines()
		for _, l := range lines {
			if l.Session == nil {
				keyless++
			} else {
				bySession[*l.Session]++
			}
		}
		for session, n := range bySession {
			if n != turns {
				t.Errorf("sample %g: %d of %d turns of session %s", sample, n, turns, session)
			}
		}
		// Five standard deviations of a fair draw.
		around := func(what string, got, of int) {
			t.Helper()
			mean := sample * float64(of)
			if d := float64(got) - mean; d*d > 25*mean*(1-sample) {
				t.Errorf("sample %g: %d of %d %s", sample, got, of, what)
			}
		}
		around("sessions", len(bySession), sessions)
		around("requests without a session", keyless, sessions*turns)
	}
}

// A key that stands twice in a JSON object is read by chance.
func TestDecisionLogNamesEachAddressOnce(t *testing.T) {
	const log = `,"decision_log":{"enabled":true}`
	g := startGateway(t, 1, twoReplicas+log)
	g.turn("a")
	g.turn("b")
	for _, members := range []string{`"replicas":["10.0.0.1:8000"]`, twoReplicas} { // it comes back as a newcomer
		if err := g.reconfigure(members + log); err != nil {
			t.Fatal(err)
		}
	}
	g.turn("c")
	lines := g.Messages(hostsim.LogInfo)
	if line := lines[len(lines)-1]; strings.Count(line, `"10.0.0.2:8000":`) != 1 {
		t.Errorf("10.0.0.2:8000 does not stand once in %s", line)
	}
}

// Package time is the judge.
func FuzzAppendTime(f *testing.F) {
	for _, at := range []string{
		"1970-01-01T00:00:00Z", "1969-12-31T23:59:59.999999999Z", "2024-02-29T12:34:56.7Z", "2023-02-28T23:59:59Z", "2100-02-28T23:59:59Z", "2100-03-01T00:00:00Z",
		"2000-02-29T00:00:00.000000001Z", "2000-12-31T23:59:59Z", "1900-03-01T00:00:00Z", "9999-12-31T23:59:59Z", "0000-01-01T00:00:00Z", "0000-02-29T01:02:03Z",
		"0000-03-01T00:00:00Z", "0400-02-29T00:00:00Z", "2026-11-30T05:43:35.120Z",
	} {
		t, err := time.Parse(time.RFC3339Nano, at)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(t.Unix(), int64(t.Nanosecond()))
	}
	f.Fuzz(func(t *testing.T, second, nanosecond int64) {
		const first, last = -62167219200, 253402300799 // of years 0 and 9999
		second = min(max(second, first), last)
		at := time.Unix(second, min(max(nanosecond, 0), 999_999_999))
		want := at.UTC().Format(time.RFC3339Nano)
		if got := string(appendTime(nil, at)); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	})
}

// Every day of four centuries and more.
func TestAppendTimeDays(t *testing.T) {
	for at := time.Date(1890, 1, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2310; at = at.AddDate(0, 0, 1) {
		if got, want := string(appendTime(nil, at)), at.Format(time.RFC3339Nano); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
}
