package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

const fitEngine = `{"gpu":{"flops":100e12,"bandwidth":1000e9},"model":{"dense":7.5e9,"weight_bytes":2,"attention":524288,"kv_bytes":131072},
"kv_tokens":20000,"max_batched_tokens":1024,"max_sequences":16,"base":"%s","mfu":0.5,"weight_read":0.8,"kv_read":0.9}`

// fitFiles writes a server's file, and the log of one whose steps take 9 ms more.
func fitFiles(t *testing.T) (log, engine string) {
	t.Helper()
	dir := t.TempDir()
	engine = filepath.Join(dir, "engine.json")
	write := func(path, text string) {
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(engine, strings.ReplaceAll(fitEngine, "%s", "3ms"))
	c, err := replica.ReadEngine(strings.NewReader(strings.ReplaceAll(fitEngine, "%s", "12ms")))
	if err != nil {
		t.Fatal(err)
	}
	var records []replica.EngineRecord
	for i := range 40 {
		records = append(records, replica.EngineRecord{Prompt: 100 + 37*i%700, Output: 10 + 13*i%50, Arrival: time.Duration(i*i) * 10 * time.Millisecond})
	}
	records, err = replica.PlayLog(c, records)
	if err != nil {
		t.Fatal(err)
	}
	var lines strings.Builder
	for _, r := range records {
		line, err := json.Marshal(map[string]any{"input_toks": r.Prompt, "output_toks": r.Output, "arrival_time": r.Arrival.Seconds(),
			"first_token_ts": r.FirstToken.Seconds(), "last_token_ts": r.Finished.Seconds()})
		if err != nil {
			t.Fatal(err)
		}
		lines.Write(append(line, '\n'))
	}
	log = filepath.Join(dir, "log.jsonl")
	write(log, lines.String())
	return log, engine
}

func TestFit(t *testing.T) {
	log, engine := fitFiles(t)
	out := filepath.Join(t.TempDir(), "fitted.json")
	held := []string{"fit", log, "--hold", "base,mfu,weight_read,kv_read,link", "--within", "2"}

	code, stdout, stderr := command(append(held, "--engine", engine)...)
	if code != exitFailed || !strings.Contains(stderr, "not within 2%: TPOT mean -") || !strings.Contains(stdout, "40 requests: base 3ms, mfu 0.500") {
		t.Errorf("as the file has it: exit %d\n%s%s", code, stdout, stderr)
	}
	code, stdout, stderr = command("fit", log, "--engine", engine, "--hold", "mfu,weight_read,kv_read", "--out", out, "--within", "2")
	if wrote := "wrote " + out + "; hostsim replay --engine " + out + " uses it\n"; code != 0 || strings.Count(stdout, "\n") != 11 || !strings.HasSuffix(stderr, wrote) {
		t.Errorf("fitted: exit %d\n%s%s", code, stdout, stderr)
	}
	if code, stdout, stderr = command(append(held, "--engine", out)...); code != 0 {
		t.Errorf("with what was written: exit %d\n%s%s", code, stdout, stderr)
	}
	fitted, err := readFrom(out, replica.ReadEngine)
	if err != nil {
		t.Fatal(err)
	}
	if base := fitted.Step.(*replica.Roofline).Base; base < 11*time.Millisecond || base > 13*time.Millisecond {
		t.Errorf("a step's fixed time is %v, want 12ms", base)
	}
}

// What was fitted to a handful of requests is not tried on others.
func TestFitOfFewRequests(t *testing.T) {
	log, engine := fitFiles(t)
	text, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(text), "\n")
	for n, want := range map[int]bool{1: false, 15: false, 16: true} {
		few := filepath.Join(t.TempDir(), "few.jsonl")
		if err := os.WriteFile(few, []byte(strings.Join(lines[:n], "")), 0o600); err != nil {
			t.Fatal(err)
		}
		code, stdout, stderr := command("fit", few, "--engine", engine, "--hold", "mfu,weight_read,kv_read")
		if code != 0 || !strings.Contains(stdout, "TPOT mean") || strings.Contains(stdout, "held out") != want || strings.Count(stdout, "\n") != 11 {
			t.Errorf("%d requests: exit %d, want held out: %v\n%s%s", n, code, want, stdout, stderr)
		}
	}
}

func TestFitHelpNamesItsPage(t *testing.T) {
	_, stdout, _ := command("fit", "--help")
	name := regexp.MustCompile(`docs/\S+\.md`).FindString(stdout)
	page, err := os.ReadFile("../../../" + name)
	if err != nil || !strings.Contains(string(page), "`engine.json` says") {
		t.Errorf("%q does not explain ENGINE.json: %v", name, err)
	}
}

func TestFitRefuses(t *testing.T) {
	log, engine := fitFiles(t)
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{log, exitUsage, "--engine FILE"},
		{"--engine " + engine, exitUsage, "takes one log"},
		{log + " --engine " + engine + " --hold e_w", exitUsage, `cannot hold "e_w"; there are base, mfu`},
		{log + " --engine " + engine + " --within -1", exitUsage, "--within is -1"},
		{engine + " --engine " + engine, exitFailed, "engine.json: engine log: line 1: "},
		{log + " --engine " + log, exitFailed, "log.jsonl: engine file: "},
		{log + " --engine none.json", exitFailed, "none.json"},
	} {
		code, stdout, stderr := command(append([]string{"fit"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("%s: exit %d, %s%s; want %d, %q", c.args, code, stdout, stderr, c.code, c.want)
		}
	}
}

// Each server of examples/engines is one.
func TestExampleEngines(t *testing.T) {
	files, err := filepath.Glob("../../../examples/engines/*.json")
	if err != nil || len(files) < 4 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		c, err := readFrom(file, replica.ReadEngine)
		if err != nil {
			t.Error(err)
		} else if _, err := replica.NewEngine(c); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
}
