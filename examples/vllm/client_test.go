//go:build vllm

package vllm

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"os/exec"
	"testing"

	"github.com/pinwheel-proxy/pinwheel/build/vllm/engine"
	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// answer is what client.py says of a turn.
type answer struct {
	Session  string
	Turn     int    // from 0
	Served   string // address, from Envoy
	Named    string // address, from Pinwheel
	Reason   string // Pinwheel's
	Attempts int
	Prompt   int // tokens
	Cached   int // of them
	Error    string
}

// play plays the plan through the gateway and returns all answers, each of which each sees first, in order of arrival.
// An answer with an error is a fault of the test.
func play(t *testing.T, g *gateway, p plan, each func(answer)) []answer {
	t.Helper()
	e, err := engine.Find(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	p.Gateway = g.url
	input, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(e.Python(), "client.py")
	complaints := &envoytest.Log{}
	cmd.Stdin, cmd.Stderr = bytes.NewReader(input), complaints
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	cmd.Stdout = in
	exited := make(chan struct{})
	err = envoytest.RunTied(cmd, exited)
	in.Close()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { // also when a turn of each has ended the test
		_ = cmd.Process.Kill()
		<-exited
	}()
	var answers []answer
	for lines := json.NewDecoder(out); ; {
		var a answer
		if err := lines.Decode(&a); err == io.EOF {
			break
		} else if err != nil {
			t.Fatalf("client.py: %v\n%s", err, complaints.Tail(20))
		}
		if a.Error != "" {
			t.Errorf("turn %d of %s: %s", a.Turn, a.Session, a.Error)
		}
		each(a)
		answers = append(answers, a)
	}
	<-exited
	want := 0
	for _, s := range p.Sessions {
		want += len(s.Turns)
	}
	if code := cmd.ProcessState.ExitCode(); code != 0 || len(answers) != want {
		t.Fatalf("client.py ended with %d after %d answers, want %d:\n%s", code, len(answers), want, complaints.Tail(20))
	}
	return answers
}
