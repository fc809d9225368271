package hostsim

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A conformance case is text: a plugin's script for the probe, and a transcript of what a gateway does to it (lines that
// start with "$"), what the plugin says, and what the gateway may do next (lines that start with "="). The file may say
// more above the first "==", and so may each case above its "-- plugin".
//
//	== name
//	-- plugin
//	request_headers return 1
//	-- run
//	$ request end a=b
//	> context_create 2 1
//	> request_headers 2 4 1
//	= wait
//
// Commands: request, response [end] [name=value ...] with the usual pseudo headers; request-body, response-body [end]
// text; request-trailers, response-trailers [name=value ...]; ready; end normal|client|upstream|timeout; stream, which
// begins another one; first, which goes back to the one before; advance DURATION; answer reset, or answer STATUS TEXT,
// to the oldest HTTP call; grpc STATUS TEXT, to the oldest gRPC call; reconfigure SCRIPTLINE; drain; crashed, which
// tells what the worker died of.

// TestConformance runs every case of testdata/conformance.
func TestConformance(t *testing.T) {
	files, err := filepath.Glob("testdata/conformance/*.txt")
	ok(t, err)
	cases := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		ok(t, err)
		for _, part := range strings.Split("\n"+string(text), "\n== ")[1:] {
			name, rest, _ := strings.Cut(part, "\n")
			_, rest, found := strings.Cut(rest, "-- plugin\n")
			script, run, ran := strings.Cut(rest, "-- run\n")
			if !found || !ran {
				t.Fatalf("%s: case %s has no plugin or no run", file, name)
			}
			cases++
			t.Run(strings.TrimSuffix(filepath.Base(file), ".txt")+"/"+name, func(t *testing.T) {
				diff(t, playTranscript(t, script, run), run)
			})
		}
	}
	if len(files) < 4 || cases < 40 {
		t.Errorf("only %d cases in %d files", cases, len(files))
	}
}

// transcriber is a case under way.
type transcriber struct {
	*probe
	s     *Stream
	first *Stream // where s is another
	calls calls
	grpc  []*GRPCCall
	out   []string
}

// playTranscript runs the commands of a transcript and returns what it should have been.
func playTranscript(t *testing.T, script, transcript string) string {
	p := &transcriber{}
	script, allow := strings.CutPrefix(script, "allow_on_headers_stop_iteration\n")
	p.probe = newProbe(t, script, func(c *Config) {
		c.AllowOnHeadersStopIteration = allow
		c.Name, c.RootID, c.VMID = "plugin", "root", "vm"
		c.HTTPCall = p.calls.dispatch
		c.GRPCCall = func(call *GRPCCall) bool {
			if call.Worker == 0 {
				p.grpc = append(p.grpc, call)
			}
			return call.Cluster == "grpc"
		}
	})
	p.s = p.Worker(0).NewStream()
	for line := range strings.SplitSeq(transcript, "\n") {
		command, found := strings.CutPrefix(line, "$ ")
		if !found {
			continue
		}
		p.out = append(p.out, line)
		after := p.do(command)
		if heard := strings.TrimSpace(p.heard()); heard != "" {
			// What a crash says is full of addresses.
			heard, _, crashed := strings.Cut(heard, "panic: ")
			if crashed {
				heard += "! crash"
			}
			p.out = append(p.out, heard)
		}
		p.out = append(p.out, after...)
	}
	for i, line := range p.out {
		p.out[i] = strings.TrimSpace(line)
	}
	return strings.Join(p.out, "\n")
}

// do runs a command and returns what the gateway may do next.
func (p *transcriber) do(command string) []string {
	word, rest, _ := strings.Cut(command, " ")
	text, end := strings.CutPrefix(rest, "end")
	text = strings.TrimPrefix(text, " ")
	switch word {
	case "request":
		return p.step(p.s.RequestHeaders(append(get.Clone(), pairsOf(text)...), end))
	case "request-body":
		return p.step(p.s.RequestBody([]byte(text), end))
	case "request-trailers":
		return p.step(p.s.RequestTrailers(pairsOf(rest)))
	case "response":
		return p.step(p.s.ResponseHeaders(append(reply.Clone(), pairsOf(text)...), end))
	case "response-body":
		return p.step(p.s.ResponseBody([]byte(text), end))
	case "response-trailers":
		return p.step(p.s.ResponseTrailers(pairsOf(rest)))
	case "ready":
		return append(p.step(p.s.RequestReady(), nil), p.step(p.s.ResponseReady(), nil)...)
	case "end":
		reasons := map[string]EndReason{"normal": EndNormal, "client": EndClientGone, "upstream": EndUpstreamReset, "timeout": EndTimeout}
		if err := p.s.End(reasons[rest]); err != nil {
			return []string{"= trap"}
		}
	case "stream":
		p.first, p.s = p.s, p.Worker(0).NewStream()
	case "first":
		p.s = p.first
	case "advance":
		d, err := time.ParseDuration(rest)
		ok(p.t, err)
		p.Advance(d)
	case "reconfigure":
		ok(p.t, p.Reconfigure([]byte(rest)))
	case "drain":
		p.Drain()
	case "crashed":
		return []string{"= dead: " + fmt.Sprint(p.Worker(0).Err() != nil)}
	case "answer", "grpc":
		p.answer(word, rest)
	default:
		p.t.Fatalf("no command %q", command)
	}
	return nil
}

// answer answers the oldest call.
func (p *transcriber) answer(kind, rest string) {
	status, text, _ := strings.Cut(rest, " ")
	if kind == "grpc" {
		call := p.grpc[0]
		p.grpc = p.grpc[1:]
		r := GRPCResponse{StatusMessage: text}
		if status == "0" {
			r = GRPCResponse{Messages: [][]byte{[]byte(text)}}
		}
		_, _ = fmt.Sscan(status, &r.Status)
		call.Respond(r)
	} else {
		call := p.calls[0]
		p.calls = p.calls[1:]
		r := HTTPResponse{Headers: Headers{{":status", status}}, Body: []byte(text)}
		if status == "reset" {
			r = HTTPResponse{}
		}
		call.Respond(r)
	}
	p.Advance(0)
}

// step describes a step.
func (p *transcriber) step(st Step, err error) []string {
	s := "= " + st.Flow.String()
	if st.Headers {
		s += " headers"
	}
	if len(st.Data) > 0 {
		s += " <" + string(st.Data) + ">"
	}
	if st.End {
		s += " end"
	}
	if r := p.s.LocalReply(); r != nil && st.Flow == Reply {
		s += fmt.Sprintf(" %d <%s> %s", r.Status, r.Body, r.Details)
	}
	switch {
	case errors.Is(err, ErrTrap):
		s += " trap"
	case err != nil:
		s += " " + err.Error()
	}
	return []string{s}
}

func pairsOf(text string) Headers {
	var h Headers
	for pair := range strings.FieldsSeq(text) {
		name, value, _ := strings.Cut(pair, "=")
		h.Add(name, value)
	}
	return h
}
