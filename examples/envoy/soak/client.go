package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"time"
)

const unknown = -1 // a session's replica, or who served an answer

// session is what a client knows of one that it has opened and not ended.
type session struct {
	id   string
	home int // position of its replica
	// epoch is what the replica's was when the turn was sent that told home.
	epoch uint32
	// sent is when the last turn was sent that was answered; zero before the first.
	sent time.Time
}

// tally is what one client counted. Others read it while the load is paused or over.
type tally struct {
	Answered  uint64 `json:"answered"`           // requests with an answer of 200
	Routed    uint64 `json:"routed"`             // of those, answered by a replica
	Began     uint64 `json:"sessions_begun"`     // sessions
	Finished  uint64 `json:"sessions_released"`  // sessions released
	Abandoned uint64 `json:"sessions_abandoned"` // sessions left to expire
	Bodies    uint64 `json:"with_body"`          // requests with a body
	LongIDs   uint64 `json:"with_long_id"`       // turns with an id of 200 bytes
	HungUp    uint64 `json:"hung_up"`            // requests that the client left before the answer
	Retried   uint64 `json:"retried_by_envoy"`   // answers that took Envoy more than one attempt
	Moved     uint64 `json:"moved"`              // turns that told another replica than the last one did
	IdleEnded uint64 `json:"idle_ended"`         // sessions that the load itself left idle for the timeout
	Cut       uint64 `json:"cut"`                // requests that a crash left without an answer
	Refused   uint64 `json:"refused"`            // requests answered with 5xx while a worker had no plugin
	Broken    uint64 `json:"broken"`             // answers that ended in the middle because their replica was killed
	Stale     uint64 `json:"stale"`              // requests on connections that an update's drain had closed
	reasons   map[string]*uint64
	served    [maxReplicas]uint64
}

func (t *tally) reason(name []byte) {
	n := t.reasons[string(name)]
	if n == nil {
		n = new(uint64)
		if t.reasons == nil {
			t.reasons = map[string]*uint64{}
		}
		t.reasons[string(name)] = n
	}
	*n++
}

// add adds what another counted.
func (t *tally) add(o *tally) {
	for _, p := range [][2]*uint64{
		{&t.Answered, &o.Answered}, {&t.Routed, &o.Routed}, {&t.Began, &o.Began}, {&t.Finished, &o.Finished},
		{&t.Abandoned, &o.Abandoned}, {&t.Bodies, &o.Bodies}, {&t.LongIDs, &o.LongIDs}, {&t.HungUp, &o.HungUp},
		{&t.Retried, &o.Retried}, {&t.Moved, &o.Moved}, {&t.IdleEnded, &o.IdleEnded}, {&t.Cut, &o.Cut},
		{&t.Refused, &o.Refused}, {&t.Stale, &o.Stale}, {&t.Broken, &o.Broken},
	} {
		*p[0] += *p[1]
	}
	for name, n := range o.reasons {
		if t.reasons == nil {
			t.reasons = map[string]*uint64{}
		}
		if t.reasons[name] == nil {
			t.reasons[name] = new(uint64)
		}
		*t.reasons[name] += *n
	}
	for i, n := range o.served {
		t.served[i] += n
	}
}

// client is one kept-alive connection with the sessions of its own, whose turns it sends one after another.
type client struct {
	run      *run
	rng      *rand.Rand
	number   int
	opened   int
	sessions []*session
	tally    tally

	conn    net.Conn
	in      *bufio.Reader
	gen     uint32 // the configuration that the connection is under
	request []byte
	reason  []byte
	steps   atomic.Uint64 // how often loop went round
}

// answer is what a client reads of a response. reason is valid until the next one is read.
type answer struct {
	status   int
	served   int
	attempts int
	reason   []byte
	closing  bool
	headed   bool // the headers are there, whatever became of the rest
}

// loop sends requests until the run says stop.
func (c *client) loop() {
	for {
		c.run.gate.RLock()
		if c.run.stop.Load() {
			c.run.gate.RUnlock()
			c.hangUp()
			return
		}
		c.step()
		c.run.gate.RUnlock()
		c.steps.Add(1)
	}
}

// step does one thing that clients do.
func (c *client) step() {
	want := c.run.settings.Sessions / c.run.settings.Connections
	switch p := c.rng.IntN(1000); {
	case p < 25 && len(c.sessions) < 2*want || len(c.sessions) < want/2:
		c.begin()
	case p < 45 && len(c.sessions) > 1:
		c.finish(c.take())
	case p < 50 && len(c.sessions) > 1:
		c.take()
		c.tally.Abandoned++
	case p < 60:
		c.unpinned("", "keyless")
	case p < 63:
		c.unpinned(strings.Repeat("o", 300), "oversized")
	case p < 65:
		c.finish(&session{id: c.newID()}) // that nobody has
	case p < 67:
		c.leave(c.any())
	case p < 70:
		c.turn(c.any(), true)
	default:
		c.turn(c.any(), false)
	}
}

func (c *client) newID() string {
	c.opened++
	id := fmt.Sprintf("%d-%d", c.number, c.opened)
	if c.opened%5 == 0 {
		id += strings.Repeat("-long", 50)[:200-len(id)]
	}
	return id
}

func (c *client) begin() {
	s := &session{id: c.newID(), home: unknown}
	c.sessions = append(c.sessions, s)
	c.tally.Began++
	c.turn(s, false)
}

func (c *client) any() *session { return c.sessions[c.rng.IntN(len(c.sessions))] }

// take returns a session that is a client's no more.
func (c *client) take() *session {
	i, last := c.rng.IntN(len(c.sessions)), len(c.sessions)-1
	s := c.sessions[i]
	c.sessions[i] = c.sessions[last]
	c.sessions[last] = nil
	c.sessions = c.sessions[:last]
	return s
}

// turn sends a turn of the session, until it is answered, and holds the answer against what is known. A slow one takes the
// replica up to 50 ms, before the answer or in the middle of it.
func (c *client) turn(s *session, slow bool) {
	c.compose(s.id, slow)
	a, at, ok := c.send()
	if !ok {
		return
	}
	c.routed(&a)
	r := c.run
	known, since, before := s.home, s.epoch, s.sent
	s.home, s.sent = unknown, at.sent
	if a.served == unknown {
		r.violation("a turn of %.20q was answered by no replica: reason %s", s.id, a.reason)
		return
	}
	if a.attempts > 1 {
		c.tally.Retried++
		if !r.ground.disturbed(&at.ground) {
			r.violation("a turn of %.20q took %d attempts while every replica was well", s.id, a.attempts)
		}
		return
	}
	s.home, s.epoch = a.served, at.ground[a.served].epoch
	kept := known == unknown || s.home == known
	if !kept {
		c.tally.Moved++
	}
	pinned := string(a.reason) == "pinned"
	// That the client waited too long is judged by its own clock, which saw more of the pause than the plugin did.
	idle := time.Since(before) >= r.settings.IdleTimeout/16*15
	switch {
	case !pinned && r.ground.closed(&at.ground, s.home):
		r.violation("session %.20q was %s on replica %d, which takes no sessions", s.id, a.reason, s.home)
	case known == unknown || before.IsZero():
	case r.ground.unsteady(known, since):
	case kept && pinned:
	case idle:
		c.tally.IdleEnded++
	default:
		r.violation("session %.20q of replica %d went to %d, reason %s", s.id, known, s.home, a.reason)
	}
}

// unpinned sends a request that gets no pin for that reason.
func (c *client) unpinned(id, reason string) {
	c.compose(id, false)
	a, at, ok := c.send()
	if !ok {
		return
	}
	c.routed(&a)
	if string(a.reason) != reason || a.served == unknown {
		c.run.violation("a request to be %s: %s, served by %d", reason, a.reason, a.served)
	}
	if a.attempts > 1 {
		c.tally.Retried++
		if !c.run.ground.disturbed(&at.ground) {
			c.run.violation("a request without a pin took %d attempts while every replica was well", a.attempts)
		}
	}
}

// finish releases a session.
func (c *client) finish(s *session) {
	if c.opened%2 == 0 {
		c.request = append(append(append(c.request[:0], "POST /finish_session?session_id="...), s.id...),
			" HTTP/1.1\r\nhost: llm\r\ncontent-length: 0\r\n\r\n"...)
	} else {
		c.request = append(append(append(c.request[:0], "DELETE /finish_session HTTP/1.1\r\nhost: llm\r\nx-session-id: "...), s.id...), "\r\n\r\n"...)
	}
	a, _, ok := c.send()
	if !ok {
		return
	}
	if a.served != unknown {
		c.run.violation("a release went to replica %d", a.served)
	}
	if s.home != unknown || !s.sent.IsZero() {
		c.tally.Finished++
	}
}

// leave sends a turn and closes the connection before the answer. The gateway reads the request before it learns of that, so it
// is decided like any other. The session may have expired by then: its last answered turn is still the one that counts.
func (c *client) leave(s *session) {
	r := c.run
	if !c.connected() || r.ground.uneasy() || r.crash.Load()%2 == 1 || r.updating.Load() {
		return
	}
	c.compose(s.id, true)
	if _, err := c.conn.Write(c.request); err == nil {
		c.tally.HungUp++
		r.decided.Add(1)
	}
	c.hangUp()
}

// compose writes a turn into c.request, without a session if id is empty.
func (c *client) compose(id string, slow bool) {
	b := c.request[:0]
	body := 0
	if c.rng.IntN(8) == 0 {
		body = 64 << c.rng.IntN(7) // to 4 KiB
		c.tally.Bodies++
		b = append(b, "POST /v1/chat/completions HTTP/1.1\r\nhost: llm\r\ncontent-type: application/json\r\ncontent-length: "...)
		b = append(strconv.AppendInt(b, int64(body), 10), "\r\n"...)
	} else {
		b = append(b, "GET /v1/models HTTP/1.1\r\nhost: llm\r\n"...)
	}
	if id != "" {
		b = append(append(append(b, "x-session-id: "...), id...), "\r\n"...)
	}
	if len(id) == 200 {
		c.tally.LongIDs++
	}
	if slow {
		b = append(b, [...]string{delayHeader, streamHeader}[c.rng.IntN(2)]...)
		b = append(strconv.AppendInt(append(b, ": "...), int64(1+c.rng.IntN(50)), 10), "\r\n"...)
	}
	b = append(b, "\r\n"...)
	c.request = append(b, padding[:body]...)
}

var padding = bytes.Repeat([]byte("pad "), 1024)

// moment is what stood when a request was sent.
type moment struct {
	sent   time.Time
	ground snapshot
}

// send sends c.request until it is answered with 200. What fails for a reason that the run knows of is sent again, counted:
// each crash costs a connection one request at most. Any other failure is a violation; ok is then false.
func (c *client) send() (a answer, at moment, ok bool) {
	r := c.run
	for {
		if err := c.connect(); err != nil {
			r.violation("connecting: %v", err)
			return a, at, false
		}
		crash := r.crash.Load()
		at = moment{time.Now(), r.ground.look()}
		a, err := c.exchange()
		if err == nil && a.status == 200 {
			c.tally.Answered++
			r.answered.Add(1)
			if a.closing {
				c.hangUp()
			}
			return a, at, true
		}
		c.hangUp()
		switch stale := c.gen != r.gen.Load() || r.updating.Load(); {
		case crash%2 == 1 || crash != r.crash.Load():
			if err != nil {
				c.tally.Cut++
			} else {
				c.tally.Refused++
			}
			for r.crash.Load()%2 == 1 {
				time.Sleep(pause)
			}
		case err != nil && stale:
			c.tally.Stale++
		case err != nil && a.headed && r.ground.disturbed(&at.ground):
			c.tally.Broken++
			r.decided.Add(1)
			c.tally.reason(a.reason)
		default:
			r.violation("a request failed while nothing went on: status %d, %v: %.80q", a.status, err, c.request)
			return a, at, false
		}
		if r.ctx.Err() != nil {
			return a, at, false
		}
	}
}

// routed counts a decision of the plugin.
func (c *client) routed(a *answer) {
	c.run.decided.Add(1)
	c.tally.reason(a.reason)
	if a.served != unknown {
		c.tally.Routed++
		c.tally.served[a.served]++
	}
}

// connected reports whether there is a connection under the present configuration.
func (c *client) connected() bool { return c.conn != nil && c.gen == c.run.gen.Load() }

func (c *client) connect() error {
	if c.connected() {
		return nil
	}
	c.hangUp()
	c.gen = c.run.gen.Load()
	conn, err := net.Dial("tcp", c.run.gateway.addr)
	if err != nil {
		return err
	}
	c.conn, c.in = conn, bufio.NewReader(conn)
	return nil
}

func (c *client) hangUp() {
	if c.conn != nil {
		c.conn.Close()
		c.conn = nil
	}
}

// exchange sends c.request and reads the answer.
func (c *client) exchange() (a answer, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(patience)); err != nil {
		return a, err
	}
	if _, err := c.conn.Write(c.request); err != nil {
		return a, err
	}
	line, err := c.in.ReadSlice('\n')
	if err != nil {
		return a, err
	}
	const protocol = "HTTP/1.1 "
	if len(line) < len(protocol)+3 || string(line[:len(protocol)]) != protocol {
		return a, fmt.Errorf("status line %q", line)
	}
	a.status, a.served, a.attempts = number(line[len(protocol):len(protocol)+3]), unknown, 1
	length := 0
	for {
		if line, err = c.in.ReadSlice('\n'); err != nil {
			return a, err
		}
		name, value, ok := bytes.Cut(bytes.TrimSpace(line), []byte(": "))
		if !ok {
			break
		}
		switch string(name) {
		case "content-length":
			length = number(value)
		case "connection":
			a.closing = string(value) == "close"
		case servedHeader:
			a.served = number(value)
		case "x-envoy-attempt-count":
			a.attempts = number(value)
		case "x-pinwheel-reason":
			c.reason = append(c.reason[:0], value...)
			a.reason = c.reason
		case "transfer-encoding":
			return a, errors.New("an answer in chunks")
		}
	}
	a.headed = true
	_, err = c.in.Discard(length)
	return a, err
}

// number reads digits; what is none counts as 0.
func number(digits []byte) (n int) {
	for _, d := range digits {
		n = 10*n + int(d-'0')
	}
	return n
}
