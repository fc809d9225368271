package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/trace"
)

const traces = "../../trace/testdata/"

// The commands of the page run, in a folder in which the project's traces are where they are in the project, and print what
// it shows: each line of a block, in this order, but for how wide the columns are.
func TestTracesPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/traces.md")
	if err != nil {
		t.Fatal(err)
	}
	project, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if err := os.Symlink(filepath.Join(project, "hostsim"), "hostsim"); err != nil {
		t.Fatal(err)
	}
	log := pageRows(page)[trace.DecisionLog]
	if err := os.WriteFile("gateway.log", []byte("[info] started\n"+log+strings.Replace(log, "e9d10d90", "aa", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	var printed string
	ran, shown := 0, 0
	for _, block := range regexp.MustCompile("(?s)```(sh|text)\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		if block[1] == "sh" {
			printed = ""
			for line := range strings.Lines(block[2]) {
				words := strings.Fields(line)
				if words[0] != "hostsim" {
					t.Fatalf("%q is no command of hostsim", line)
				}
				code, stdout, stderr := command(words[1:]...)
				if code != 0 {
					t.Fatalf("%s: exit %d\n%s", line, code, stderr)
				}
				printed += stdout
				ran++
			}
			continue
		}
		rest := printed
		for line := range strings.Lines(block[2]) {
			pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.Join(strings.Fields(line), " ")), " ", " +")
			at := regexp.MustCompile(`(?m)^ *` + pattern + `$`).FindStringIndex(rest)
			if at == nil {
				t.Errorf("the page shows %q; printed is, from there on,\n%s", strings.TrimSpace(line), rest)
				continue
			}
			rest = rest[at[1]:]
			shown++
		}
	}
	if ran < 10 || shown < 15 {
		t.Errorf("only %d commands and %d lines of output", ran, shown)
	}
}

func pageRows(page []byte) map[trace.Format]string {
	rows := map[trace.Format]string{}
	for _, m := range regexp.MustCompile("(?s)\n### `([a-z-]+)`\n\n```jsonl\n(.*?)```").FindAllStringSubmatch(string(page), -1) {
		rows[trace.Format(m[1])] = m[2]
	}
	return rows
}

// Each format has a row on the page, which is read as that format.
func TestTracesPageRows(t *testing.T) {
	page, err := os.ReadFile("../../../docs/traces.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := pageRows(page)
	for _, format := range trace.Formats() {
		r, got, err := trace.Open(strings.NewReader(rows[format]), trace.Options{})
		if err != nil || got != format {
			t.Errorf("%s: the page's row is of format %q, %v", format, got, err)
			continue
		}
		if _, err := trace.ReadAll(r); err != nil {
			t.Errorf("%s: %v", format, err)
		}
	}
}

func TestTraceStatsJSON(t *testing.T) {
	code, stdout, stderr := command("trace", "stats", "--json", traces+"mooncake_conversation.compact.jsonl", traces+"weka_cc_24.ci.compact.jsonl")
	var got struct {
		Traces []struct {
			File     string
			Format   string
			BadLines int `json:"bad_lines"`
			Turns    int
			Unique   int     `json:"unique_blocks"`
			Ideal    float64 `json:"ideal_hit_rate"`
		}
	}
	if err := json.Unmarshal([]byte(stdout), &got); err != nil || code != 0 || stderr != "" {
		t.Fatalf("exit %d, %v, %s", code, err, stderr)
	}
	if len(got.Traces) != 2 || got.Traces[0].Unique != 182_790 || got.Traces[1].Turns != 736 || got.Traces[1].Format != "weka" || got.Traces[1].Ideal < .9 {
		t.Errorf("%+v", got)
	}
}

// Bad lines are named, ten of them, and counted; only --strict makes them an error.
func TestTraceStatsBadLines(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	good := `{"group":"g","prompt_len":100,"out_lens":[10],"obs_lens":[]}` + "\n"
	if err := os.WriteFile(path, []byte(good+strings.Repeat("oops\n", 12)), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, strict := range []bool{false, true} {
		args := []string{"trace", "stats", path}
		want := 0
		if strict {
			args, want = append(args, "--strict"), 1
		}
		code, stdout, stderr := command(args...)
		if code != want || !regexp.MustCompile(`(?m)^bad lines +12$`).MatchString(stdout) || !regexp.MustCompile(`(?m)^sessions +1$`).MatchString(stdout) {
			t.Errorf("strict %v: exit %d\n%s", strict, code, stdout)
		}
		if n := strings.Count(stderr, path+":"); strings.Count(stderr, "invalid character") != 10 || !strings.Contains(stderr, path+":2: ") || !strings.Contains(stderr, path+": and 2 bad lines more") {
			t.Errorf("%d lines name the file:\n%s", n, stderr)
		}
		if strict != strings.Contains(stderr, "hostsim: "+path+": 12 bad lines") {
			t.Errorf("strict %v: %s", strict, stderr)
		}
	}
}

func TestTraceMistakes(t *testing.T) {
	dir := t.TempDir()
	odd := filepath.Join(dir, "odd.jsonl")
	if err := os.WriteFile(odd, []byte(`{"a":1}`), 0o600); err != nil {
		t.Fatal(err)
	}
	const weka = traces + "weka_cc_24.ci.compact.jsonl"
	out := filepath.Join(dir, "out.jsonl")
	tests := []struct {
		line string
		code int
		want string
	}{
		{"trace stat", 2, `trace has no command "stat"`},
		{"trace stats", 2, "stats takes one trace or several"},
		{"trace stats --format wekka " + weka, 2, `--format: there is no format "wekka": choose one of weka, `},
		{"trace stats --block-size 100 " + weka, 2, "weka_cc_24.ci.compact.jsonl: 100 is not a multiple of the trace's 64 tokens"},
		{"trace stats --block-size -1 " + weka, 2, "--block-size: -1"},
		{"trace stats --log-output 9999 " + weka, 2, "9999 generated a turn"},
		{"trace stats no-such-file", 1, "no-such-file"},
		{"trace stats " + odd, 1, `odd.jsonl: unknown format: line 1 has the keys "a"; give one of weka`},
		{"trace stats --format decision-log " + odd, 1, "odd.jsonl: not a decision log: 1 lines, none of them a decision of the plugin's"},
		{"trace convert " + weka, 2, "give --to"},
		{"trace convert --to x " + weka, 2, `--to: there is no format "x"`},
		{"trace convert --to nemo-gym " + weka, 1, "nemo-gym can only be read"},
		{"trace convert --to groups " + weka + " -o " + out, 1, `cannot be written as groups: session "trace_0095"`},
		{"trace generate --strata 5 -o " + out, 2, `"5" is not FROM-TO:WEIGHT`},
		{"trace generate --sessions -1 -o " + out, 2, "-1 sessions"},
		{"trace generate --to y -o " + out, 2, `--to: there is no format "y"`},
	}
	for _, tt := range tests {
		code, _, stderr := command(strings.Fields(tt.line)...)
		if code != tt.code || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: exit %d, %q; want %d and %q", tt.line, code, stderr, tt.code, tt.want)
		}
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("a conversion that failed leaves files behind: %v, %v", left, err)
	}
}

// A conversion may write over what it reads, and one that fails leaves what was there. A device is no file to put another in
// the place of.
func TestTraceConvertInPlace(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.jsonl")
	if code, _, stderr := command(append(strings.Fields("trace generate --sessions 2000 --strata 1-2:1 --first-prompt 100 --first-prompt-max 100 -o"), path)...); code != 0 {
		t.Fatal(stderr)
	}
	for _, tt := range []struct {
		to   string
		code int
	}{{"nemo-gym", 1}, {"weka", 0}, {"groups", 1}} {
		code, _, stderr := command("trace", "convert", "--to", tt.to, path, "-o", path)
		if code != tt.code {
			t.Errorf("%s: exit %d, %s", tt.to, code, stderr)
		}
		_, stdout, stderr := command("trace", "stats", path)
		if !regexp.MustCompile(`(?m)^sessions +2,000$`).MatchString(stdout) {
			t.Errorf("after %s:\n%s%s", tt.to, stdout, stderr)
		}
	}
	code, _, stderr := command("trace", "convert", "--to", "weka", path, "-o", os.DevNull)
	if info, err := os.Stat(os.DevNull); code != 0 || err != nil || info.Mode().IsRegular() {
		t.Errorf("exit %d, %s; %v, %v", code, stderr, info, err)
	}
}

// What is assumed of a decision log gets into what it is converted to.
func TestTraceConvertAssumes(t *testing.T) {
	path := filepath.Join(t.TempDir(), "gateway.log")
	line := `{"pinwheel": "decision", "time": "2026-11-30T05:02:0%s", "pool": "p", "session": "a", "reason": "placed"}` + "\n"
	if err := os.WriteFile(path, []byte(strings.Replace(line, "%s", "1Z", 1)+"other\n"+strings.Replace(line, "%s", "9Z", 1)), 0o600); err != nil {
		t.Fatal(err)
	}
	code, stdout, stderr := command(append(strings.Fields("trace convert --to weka --log-first-prompt 800 --log-per-turn 64 --log-output 9"), path)...)
	if want := `{"id":"p/a","tool":0,"sys":0,"r":[[0,800,9,0,5,[0,12]],[8,864,9,3,5,[12,1]]]}` + "\n"; code != 0 || stdout != want {
		t.Errorf("exit %d, %s\n%s\nwant %s", code, stderr, stdout, want)
	}
}

// Equal flags make equal files, whatever they are written as.
func TestTraceGenerate(t *testing.T) {
	flags := "trace generate --sessions 30 --seed 4 --group-size 3 --system-prompt 2000"
	_, first, _ := command(strings.Fields(flags)...)
	_, again, _ := command(strings.Fields(flags)...)
	if first == "" || first != again || strings.Count(first, "\n") != 30 {
		t.Errorf("%d lines, equal: %v", strings.Count(first, "\n"), first == again)
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "t.jsonl.gz")
	for _, to := range []string{"weka", "mooncake-compact", "qwen-bailian"} {
		code, _, stderr := command(append(strings.Fields(flags), "--to", to, "-o", path)...)
		if code != 0 || !strings.Contains(stderr, path+": 30 sessions as "+to) {
			t.Fatalf("%s: exit %d, %s", to, code, stderr)
		}
		code, stdout, _ := command("trace", "stats", path)
		if code != 0 || !regexp.MustCompile(`(?m)^sessions +30$`).MatchString(stdout) || !regexp.MustCompile(`(?m)^format +`+to+`$`).MatchString(stdout) {
			t.Errorf("%s: exit %d\n%s", to, code, stdout)
		}
	}
}

func TestTraceCompletion(t *testing.T) {
	for _, line := range []string{"trace|stats|--format|", "trace|convert|--to|", "trace|generate|--to|"} {
		if _, stdout, _ := command(append([]string{"__complete"}, strings.Split(line, "|")...)...); !strings.HasPrefix(stdout, "weka\nweka-plain\n") {
			t.Errorf("%s: %q", line, stdout)
		}
	}
}
