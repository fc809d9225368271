package differential

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// Gateway is a real Envoy with a listener for each of a number of exchanges.
type Gateway struct {
	envoy   *envoytest.Envoy
	players map[string]*player
	barrier string // address of a listener that answers by itself
	done    chan struct{}
	follow  sync.WaitGroup
}

// player is one exchange in the gateway.
type player struct {
	exchange         *Exchange
	addr             string
	t                *transcript
	client, upstream *peer
	other            server
}

// server is an upstream that the script plays.
type server interface {
	send(a act, addr string) error
	port() int
	close()
}

// Open starts the Envoy of the given path, which loads the probe from the file wasm. dir is for its configuration.
func Open(ctx context.Context, binary, wasm, dir string, exchanges []*Exchange) (*Gateway, error) {
	g := &Gateway{players: map[string]*player{}, done: make(chan struct{})}
	var places []place
	for _, e := range exchanges {
		p, err := newPlayer(e)
		if err != nil {
			return nil, err
		}
		g.players[e.ID()] = p
		places = append(places, place{e, p.upstream.port(), p.other.port()})
	}
	text, err := bootstrap(wasm, places)
	if err != nil {
		return nil, err
	}
	file := filepath.Join(dir, "envoy.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	g.envoy, err = envoytest.Start(ctx, envoytest.Options{Binary: binary, Bootstrap: file, Concurrency: 1, ComponentLevels: "wasm:debug",
		ReadyTimeout: startTime})
	if err != nil {
		g.closePlayers()
		return nil, err
	}
	g.follow.Add(1)
	go g.followLog()
	return g, g.findListeners(ctx)
}

// startTime bounds the start: Envoy tries every exchange's configuration in a virtual machine of its own, one by one.
const startTime = 5 * time.Minute

func newPlayer(e *Exchange) (*player, error) {
	p := &player{exchange: e}
	p.t = newTranscript(e.cluster("upstream"), "{upstream}", e.cluster("other"), "{other}")
	p.client = &peer{actor: "client", t: p.t}
	for _, actor := range []string{"upstream", "other"} {
		_, refused := e.Config["refused"]
		refused = refused && actor == "upstream"
		port := 0
		if refused { // one that nobody else is given while it is closed
			var err error
			if port, err = envoytest.FreePort(); err != nil {
				return nil, err
			}
		}
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			return nil, err
		}
		if actor == "other" && e.speaksGRPC() {
			p.other = serveGRPC(l, actor, p.t)
			continue
		}
		s := &peer{actor: actor, t: p.t, listener: l}
		if refused {
			l.Close()
		} else {
			go s.serve()
		}
		if actor == "upstream" {
			p.upstream = s
		} else {
			p.other = s
		}
	}
	return p, nil
}

func (p *peer) port() int { return p.listener.Addr().(*net.TCPAddr).Port }
func (p *peer) close()    { p.listener.Close() }

// Close ends the Envoy and the servers.
func (g *Gateway) Close() {
	g.envoy.Stop()
	close(g.done)
	g.follow.Wait()
	g.closePlayers()
}

func (g *Gateway) closePlayers() {
	for _, p := range g.players {
		p.upstream.close()
		p.other.close()
	}
}

// findListeners learns the ports that Envoy has chosen.
func (g *Gateway) findListeners(ctx context.Context) error {
	text, err := g.envoy.Admin.Get(ctx, "/listeners?format=json")
	if err != nil {
		return err
	}
	var page struct {
		Statuses []struct {
			Name    string
			Address struct {
				Socket struct {
					Address string
					Port    int `json:"port_value"`
				} `json:"socket_address"`
			} `json:"local_address"`
		} `json:"listener_statuses"`
	}
	if err := json.Unmarshal([]byte(text), &page); err != nil {
		return fmt.Errorf("differential: listeners: %w", err)
	}
	for _, s := range page.Statuses {
		addr := fmt.Sprintf("%s:%d", s.Address.Socket.Address, s.Address.Socket.Port)
		if s.Name == barrier {
			g.barrier = addr
		}
		if p := g.players[s.Name]; p != nil {
			p.addr = addr
		}
	}
	return nil
}

// logLine is a line that a plugin wrote: the thread, its root id, the message. The plugin's name is there for streams only.
var logLine = regexp.MustCompile(`^\[[^\]]*\]\[(\d+)\]\[\w+\]\[wasm\] \[[^\]]*\] wasm log (?:probe )?([^ ]+) [^ ]+: (.*)$`)

// followLog hands each line of a plugin to its exchange. The first thread to write is the main one, with the canary.
func (g *Gateway) followLog() {
	defer g.follow.Done()
	mark, main, rest := 0, "", ""
	for {
		text := g.envoy.Log.Since(mark)
		mark += len(text)
		lines := strings.Split(rest+text, "\n")
		rest = lines[len(lines)-1]
		for _, l := range lines[:len(lines)-1] {
			m := logLine.FindStringSubmatch(l)
			if m == nil {
				continue
			}
			if main == "" {
				main = m[1]
			}
			if p := g.players[m[2]]; p != nil {
				p.exchange.log(p.t, m[1] == main, m[3])
			}
		}
		select {
		case <-g.done:
			return
		case <-time.After(time.Millisecond):
		}
	}
}

// Play plays an exchange and returns what it caused. want is what it should cause, or nil to find out.
func (g *Gateway) Play(e *Exchange, want []Step) ([]Step, error) {
	p := g.players[e.ID()]
	var got []Step
	for i, s := range e.Steps {
		a, err := parseAct(s.Do)
		if err != nil {
			return nil, err
		}
		if s.Do != "start" && i == 0 {
			g.settle(p.t)
			p.t.next() // what the start caused is of no interest
		}
		if err := p.perform(a); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", e.ID(), s.Do, err)
		}
		var expected []string
		if want != nil {
			expected = want[i].Caused
		}
		if a.span > 0 && len(expected) == 0 {
			time.Sleep(a.span)
		}
		if len(expected) > 0 {
			p.t.await(expected)
		}
		if len(expected) == 0 || i == len(e.Steps)-1 {
			g.settle(p.t)
		}
		got = append(got, Step{s.Do, p.t.caused()})
		p.t.next()
	}
	p.client.hangUp()
	if e.ownProcess() && g.dies() {
		last := &got[len(got)-1]
		last.Caused = append(last.Caused, "gateway < dies")
	}
	return got, nil
}

// dies waits for the process to end, which takes a moment longer than its last words.
func (g *Gateway) dies() bool {
	for range 100 {
		if !g.envoy.Running() {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

func (p *peer) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.conn != nil {
		p.hungUp = true
		p.conn.Close()
	}
}

func (p *player) perform(a act) error {
	switch a.actor {
	case "client":
		return p.client.send(a, p.addr)
	case "upstream":
		return p.upstream.send(a, "")
	case "other":
		return p.other.send(a, "")
	}
	return nil
}

// patience bounds the wait for what a recording has.
const patience = time.Minute

// await waits until what a step has caused is as expected, at most patience.
func (t *transcript) await(expected []string) {
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for !slices.Equal(t.caused(), expected) {
		select {
		case <-t.changed:
		case <-deadline.C:
			return
		}
	}
}

// settle waits until the gateway has done all that it had to do. Its one worker takes what is ready in turn, so what it
// was sent before a request to the barrier it has read once that is answered; a few rounds more let what it did about it
// arrive here, and what that caused in turn.
func (g *Gateway) settle(t *transcript) {
	const rounds = 5
	last := t.caused()
	for calm := 0; calm < rounds; calm++ {
		if res, err := http.Get("http://" + g.barrier); err == nil {
			res.Body.Close()
		}
		time.Sleep(4 * time.Millisecond)
		if now := t.caused(); !slices.Equal(now, last) {
			last, calm = now, 0
		}
	}
}
