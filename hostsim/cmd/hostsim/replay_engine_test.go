package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/hostsim/replica"
)

// A file with a preset's numbers is that preset; the report names the file, and the flags about pool and batch go on top.
func TestReplayEngineFile(t *testing.T) {
	preset, err := replica.Preset("H100", "qwen3-32b", 2)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "engine.json")
	if err := writeEngine(file, preset, ""); err != nil {
		t.Fatal(err)
	}
	args := []string{"--policy", "random", "--in-process", "--seeds", "1", "--max-sequences", "9"}
	named, read := replayJSON(t, args...), replayJSON(t, append(args, "--engine", file)...)
	if !reflect.DeepEqual(named.Policies, read.Policies) {
		t.Errorf("by name %+v\nby file %+v", named.Policies[0].Seeds, read.Policies[0].Seeds)
	}
	if got, want := read.Setup[1].Value, "3 replicas, each as "+file; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := read.Setup[2].Value; got != named.Setup[2].Value || !strings.Contains(got, "9 sequences") {
		t.Errorf("%q, want %q", got, named.Setup[2].Value)
	}
	preset.Step.(*replica.Roofline).Base *= 10
	if err := writeEngine(file, preset, ""); err != nil {
		t.Fatal(err)
	}
	if slow := replayJSON(t, append(args, "--engine", file)...); slow.Policies[0].Seeds[0].Wall <= named.Policies[0].Seeds[0].Wall {
		t.Error("the file's numbers count for nothing")
	}
}

// The engines that are shipped can be replayed.
func TestReplayExampleEngines(t *testing.T) {
	files, err := filepath.Glob("../../../examples/engines/*.json")
	if err != nil || len(files) < 4 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		f := replayFlags{engineFile: file}
		if _, err := f.engine(); err != nil {
			t.Error(err)
		}
	}
}
