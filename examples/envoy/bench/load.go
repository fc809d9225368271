package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// The load runs in a process of its own, on a CPU of its own, so that it shares
// neither with Envoy: this binary again, called with loadCommand. It holds the
// replicas too. Parent and child speak JSON lines over stdin and stdout.

const loadCommand = "load-process"

// order asks the load process for one measurement.
type order struct {
	Addr        string        // of the gateway
	Connections int           // kept alive, one request at a time on each
	Sessions    int           // ids go round over this many
	Body        int           // bytes of each request's JSON body; 0 means GET
	InBody      bool          // the body, not a header, names the session
	Requests    int           // stop after so many; 0 means by Duration
	Duration    time.Duration // ignored when Requests is set
}

// tally is the answer to an order.
type tally struct {
	Requests int
	Elapsed  time.Duration
	Failure  string // the first answer that was not a 200
}

// load is the parent's end.
type load struct {
	replicas []string
	cmd      *exec.Cmd
	exited   chan struct{}
	in       *json.Encoder
	out      *json.Decoder
}

func startLoad() (*load, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	l := &load{cmd: exec.Command(self, loadCommand), exited: make(chan struct{})}
	l.cmd.Stderr = os.Stderr
	stdin, err := l.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	// Not StdoutPipe: the goroutine that reaps the child would close it under us.
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	l.cmd.Stdout = w
	if err := envoytest.RunTied(l.cmd, l.exited); err != nil {
		return nil, err
	}
	w.Close()
	l.in, l.out = json.NewEncoder(stdin), json.NewDecoder(r)
	return l, l.out.Decode(&l.replicas)
}

func (l *load) run(o order) (tally, error) {
	var t tally
	if err := l.in.Encode(o); err != nil {
		return t, err
	}
	if err := l.out.Decode(&t); err != nil {
		return t, fmt.Errorf("bench: load process: %w", err)
	}
	if t.Failure != "" {
		return t, fmt.Errorf("bench: load on %s: %s", o.Addr, t.Failure)
	}
	return t, nil
}

func (l *load) stop() {
	_ = l.cmd.Process.Kill()
	<-l.exited
}

// loadProcess is the child: it opens three replicas, prints their addresses and
// serves orders until stdin ends.
func loadProcess(in io.Reader, out io.Writer) error {
	var addrs []string
	for range 3 {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		go serveReplica(l)
		addrs = append(addrs, l.Addr().String())
	}
	enc, dec := json.NewEncoder(out), json.NewDecoder(in)
	if err := enc.Encode(addrs); err != nil {
		return err
	}
	for {
		var o order
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := enc.Encode(o.perform()); err != nil {
			return err
		}
	}
}

const (
	answerBody = "{}"
	answer     = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 2\r\n\r\n" + answerBody
)

// serveReplica answers every request head with a constant: the less a replica
// does, the less it disturbs.
func serveReplica(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer conn.Close()
			in := bufio.NewReader(conn)
			for body := 0; ; {
				line, err := in.ReadSlice('\n')
				if err != nil {
					return
				}
				if size, ok := bytes.CutPrefix(line, []byte("content-length: ")); ok {
					body, _ = strconv.Atoi(string(bytes.TrimSpace(size)))
				}
				if len(line) > 2 {
					continue
				}
				if _, err := in.Discard(body); err != nil {
					return
				}
				body = 0
				if _, err := io.WriteString(conn, answer); err != nil {
					return
				}
			}
		}()
	}
}

// perform drives all connections until the order is done.
func (o order) perform() tally {
	var (
		mu    sync.Mutex
		total tally
		all   sync.WaitGroup
	)
	begin := time.Now()
	for c := range o.Connections {
		all.Go(func() {
			n, err := o.drive(c, begin.Add(o.Duration))
			mu.Lock()
			defer mu.Unlock()
			total.Requests += n
			if err != nil && total.Failure == "" {
				total.Failure = err.Error()
			}
		})
	}
	all.Wait()
	total.Elapsed = time.Since(begin)
	return total
}

// drive sends turns on one connection: those sessions whose number is c modulo
// the number of connections, in order, round and round.
func (o order) drive(c int, deadline time.Time) (int, error) {
	conn, err := net.Dial("tcp", o.Addr)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	quota := (o.Requests - c + o.Connections - 1) / o.Connections
	request := make([]byte, 0, 512+o.Body)
	prompt := strings.Repeat("some words ", o.Body/11+1)
	var buf [4096]byte
	for n := 0; ; n++ {
		if o.Requests > 0 && n == quota || o.Requests == 0 && n%16 == 0 && time.Now().After(deadline) {
			return n, nil
		}
		id := (c + n*o.Connections) % o.Sessions
		request = o.appendRequest(request[:0], id, prompt)
		if _, err := conn.Write(request); err != nil {
			return n, err
		}
		if err := readAnswer(conn, buf[:]); err != nil {
			return n, err
		}
	}
}

// appendRequest appends a turn of the session. Of the body the prompt is what its
// size leaves, and the session is named behind it, where it costs most.
func (o order) appendRequest(b []byte, id int, prompt string) []byte {
	const head = "%s HTTP/1.1\r\nhost: llm\r\nuser-agent: bench\r\n"
	if o.Body == 0 {
		return fmt.Appendf(fmt.Appendf(b, head, "GET /v1/models"), "x-session-id: rollout-%08d\r\n\r\n", id)
	}
	b = fmt.Appendf(b, head, "POST /v1/chat/completions")
	header, key := "x-session-id", "ignored"
	if o.InBody {
		header, key = "x-ignored", "user"
	}
	b = fmt.Appendf(b, "%s: rollout-%08d\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n", header, id, o.Body)
	const frame = `{"prompt":"%s","%s":"rollout-%08d"}`
	return fmt.Appendf(b, frame, prompt[:max(0, o.Body-len(fmt.Sprintf(frame, "", key, id)))], key, id)
}

// readAnswer reads one answer of a replica: it ends with the known body.
func readAnswer(conn net.Conn, buf []byte) error {
	const success = "HTTP/1.1 200 "
	for got := 0; ; {
		n, err := conn.Read(buf[got:])
		got += n
		whole := bytes.HasSuffix(buf[:got], []byte("\r\n\r\n"+answerBody))
		good := bytes.HasPrefix(buf[:got], []byte(success))
		if whole && good {
			return nil
		}
		if err != nil || got == len(buf) || got >= len(success) && !good {
			head, _, _ := strings.Cut(string(buf[:got]), "\r\n")
			return fmt.Errorf("answer %q, %v", head, err)
		}
	}
}
