package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
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
	Sessions    int           // ids go round over this many; 0 means that no session comes twice
	Body        int           // bytes of each request's JSON body; 0 means GET
	InBody      bool          // the body, not a header, names the session
	SDK         bool          // headers as of an OpenAI SDK
	From        int           // the first id of an order with Requests; those by Duration begin anywhere
	Requests    int           // stop after so many; 0 means by Duration
	Duration    time.Duration // ignored when Requests is set
	// Release ends the sessions that the last order with Sessions 0 has opened at the address, and does nothing else.
	Release bool
}

// tally is the answer to an order.
type tally struct {
	Requests int
	Elapsed  time.Duration
	P50, P99 time.Duration // of latency, from before the write to after the read
	First    time.Duration // of the first connection's first request, without connecting
	Failure  string        // the first answer that was not a 200
}

// load is the parent's end.
type load struct {
	replicas []string
	sent     map[string]int // requests by address, releases not counted
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
	if l.sent == nil {
		l.sent = map[string]int{}
	}
	l.sent[o.Addr] += t.Requests
	if t.Failure != "" {
		return t, fmt.Errorf("bench: load on %s: %s", o.Addr, t.Failure)
	}
	return t, nil
}

func (l *load) stop() {
	_ = l.cmd.Process.Kill()
	<-l.exited
}

// maxReplicas is how many the load process holds: no experiment takes more.
const maxReplicas = 1024

// loadProcess is the child: it opens the replicas, prints their addresses and
// serves orders until stdin ends.
func loadProcess(in io.Reader, out io.Writer) error {
	var addrs []string
	for range maxReplicas {
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
	fresh := map[string]*span{}
	for {
		var o order
		if err := dec.Decode(&o); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if fresh[o.Addr] == nil {
			fresh[o.Addr] = &span{firstFresh, firstFresh}
		}
		if err := enc.Encode(o.perform(fresh[o.Addr])); err != nil {
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

// span is the sessions [from, to) that the last order has opened at an address.
type span struct{ from, to int }

// firstFresh is the first session that never came before: those of orders with Sessions lie below.
const firstFresh = 10_000_000

// perform drives all connections until the order is done.
func (o order) perform(fresh *span) tally {
	if o.Release {
		if err := fresh.release(o.Addr); err != nil {
			return tally{Failure: err.Error()}
		}
		return tally{}
	}
	first := 0
	switch {
	case o.Sessions == 0:
		first = fresh.to
	case o.Requests == 0:
		// Else short measurements would come to the same few sessions each time.
		o.From = rand.IntN(o.Sessions)
	}
	var (
		mu    sync.Mutex
		total tally
		took  []time.Duration
		all   sync.WaitGroup
		most  int
	)
	begin := time.Now()
	for c := range o.Connections {
		all.Go(func() {
			d := drive{order: o, c: c, first: first}
			err := d.run(begin.Add(o.Duration))
			mu.Lock()
			defer mu.Unlock()
			total.Requests += d.n
			most = max(most, d.n)
			took = append(took, d.took...)
			if c == 0 {
				total.First = d.begin
			}
			if err != nil && total.Failure == "" {
				total.Failure = err.Error()
			}
		})
	}
	all.Wait()
	total.Elapsed = time.Since(begin)
	if o.Sessions == 0 {
		*fresh = span{first, first + most*o.Connections}
	}
	if slices.Sort(took); len(took) > 0 {
		total.P50, total.P99 = took[len(took)/2], took[len(took)*99/100]
	}
	return total
}

// release ends the sessions, some at once. It ends none twice.
func (s *span) release(addr string) error {
	if s.from == s.to {
		return nil
	}
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	in := bufio.NewReader(conn)
	for s.from < s.to {
		text := []byte("POST /finish_session?session_id=")
		for n := 0; n < 200 && s.from < s.to; n++ {
			text = fmt.Appendf(text, "rollout-%08d,", s.from)
			s.from++
		}
		text = append(bytes.TrimSuffix(text, []byte(",")), " HTTP/1.1\r\nhost: llm\r\ncontent-length: 0\r\n\r\n"...)
		if _, err := conn.Write(text); err != nil {
			return err
		}
		res, err := http.ReadResponse(in, nil)
		if err != nil {
			return err
		}
		_, err = io.Copy(io.Discard, res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != http.StatusOK {
			return fmt.Errorf("release: %s, %v", res.Status, err)
		}
	}
	return nil
}

// drive is one connection.
type drive struct {
	order
	c, first int
	n        int // requests done
	begin    time.Duration
	took     []time.Duration
	stride   int // of latencies one in so many is kept
}

// mostLatencies bounds what an order keeps, 8 bytes each.
const mostLatencies = 1 << 20

// run sends turns: those sessions whose number is c modulo the number of
// connections, in order, round and round.
func (d *drive) run(deadline time.Time) error {
	conn, err := net.Dial("tcp", d.Addr)
	if err != nil {
		return err
	}
	defer conn.Close()
	quota := (d.Requests - d.c + d.Connections - 1) / d.Connections
	request, places := d.request()
	var buf [4096]byte
	for now := time.Now(); ; d.n++ { // once at least, however late it is
		if d.Requests > 0 && d.n == quota || d.Requests == 0 && d.n > 0 && now.After(deadline) {
			return nil
		}
		id := d.c + d.n*d.Connections
		if d.Sessions > 0 {
			id = (d.From + id) % d.Sessions
		}
		setSession(request, places, d.first+id)
		before := time.Now()
		if _, err := conn.Write(request); err != nil {
			return err
		}
		if err := readAnswer(conn, buf[:]); err != nil {
			return err
		}
		now = time.Now()
		d.keep(now.Sub(before))
	}
}

// keep notes a latency. When there are too many, every second is dropped, and of further ones every second is not kept.
func (d *drive) keep(latency time.Duration) {
	if d.n == 0 {
		d.begin, d.stride = latency, 1
	}
	if d.n%d.stride != 0 {
		return
	}
	if len(d.took) == mostLatencies/d.Connections {
		for i := range len(d.took) / 2 {
			d.took[i] = d.took[2*i]
		}
		d.took, d.stride = d.took[:len(d.took)/2], 2*d.stride
		if d.n%d.stride != 0 {
			return
		}
	}
	d.took = append(d.took, latency)
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
