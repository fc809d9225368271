package fleet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/pinwheel-proxy/pinwheel/examples/envoy/envoytest"
)

// Gateway is one Envoy. Its methods may be called by several goroutines.
type Gateway struct {
	// Addr is the listener's host:port.
	Addr string
	// Envoy is the process.
	Envoy *envoytest.Envoy

	client *http.Client
}

// patience bounds a request: longer than anything that a gateway may wait for, so that what takes longer is a failure.
const patience = 20 * time.Second

// New is a gateway that was started by other means.
func New(addr string, envoy *envoytest.Envoy) *Gateway {
	return &Gateway{Addr: addr, Envoy: envoy, client: &http.Client{
		Timeout:   patience,
		Transport: &http.Transport{MaxIdleConnsPerHost: 1000, DisableCompression: true},
	}}
}

// Answer is what came of one turn.
type Answer struct {
	Gateway int       // its number
	Began   time.Time // when the turn was sent
	Took    time.Duration
	Status  int
	Home    string // the replica that served, as the gateway says
	Reason  string // why there
	Err     error  // of the client; Status is then 0
}

// Failed says what is wrong with an answer, or nothing.
func (a Answer) Failed() string {
	switch {
	case a.Err != nil:
		return a.Err.Error()
	case a.Status != http.StatusOK:
		return fmt.Sprint("status ", a.Status)
	case a.Home == "":
		return "no replica named"
	}
	return ""
}

// Turn sends one turn of a session.
func (g *Gateway) Turn(ctx context.Context, session string) (a Answer) {
	a.Began = time.Now()
	defer func() { a.Took = time.Since(a.Began) }()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+g.Addr+"/v1/models", nil)
	if err != nil {
		a.Err = err
		return a
	}
	request.Header.Set("X-Session-ID", session)
	reply, err := g.client.Do(request)
	if err != nil {
		a.Err = err
		return a
	}
	defer reply.Body.Close()
	if _, a.Err = io.Copy(io.Discard, reply.Body); a.Err == nil {
		a.Status = reply.StatusCode
		a.Home, a.Reason = reply.Header.Get("x-pinwheel-replica"), reply.Header.Get("x-pinwheel-reason")
	}
	if served := reply.Header.Get(envoytest.ServedByHeader); served != "" {
		a.Home = served // the gateway said which replica it asked, this one answered
	}
	return a
}

// Finish ends sessions, some of them in each request, and returns the last answer.
func (g *Gateway) Finish(ctx context.Context, sessions ...string) (body string, err error) {
	for len(sessions) > 0 {
		n := min(len(sessions), 50)
		some := make([]string, n)
		for i, id := range sessions[:n] {
			some[i] = url.QueryEscape(id)
		}
		sessions = sessions[n:]
		text, err := g.do(ctx, http.MethodPost, "/finish_session?session_id="+strings.Join(some, ","))
		if err != nil {
			return "", err
		}
		body = string(text)
	}
	return body, nil
}

func (g *Gateway) get(ctx context.Context, path string) ([]byte, error) {
	return g.do(ctx, http.MethodGet, path)
}

func (g *Gateway) do(ctx context.Context, method, path string) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+g.Addr+path, nil)
	if err != nil {
		return nil, err
	}
	reply, err := g.client.Do(request)
	if err != nil {
		return nil, err
	}
	defer reply.Body.Close()
	body, err := io.ReadAll(reply.Body)
	if err == nil && reply.StatusCode != http.StatusOK {
		err = fmt.Errorf("fleet: %s: %s: %s", path, reply.Status, body)
	}
	return body, err
}

// Calls counts a gateway's calls to etcd.
type Calls map[string]uint64

// Of sums up the calls of the kind with the result; an empty name is any.
func (c Calls) Of(call, result string) (n uint64) {
	for name, v := range c {
		of, ended, _ := strings.Cut(name, ".result.")
		_, of, _ = strings.Cut(of, ".call.")
		if (call == "" || call == of) && (result == "" || result == ended) {
			n += v
		}
	}
	return n
}

// String shows those that there were.
func (c Calls) String() string {
	var list []string
	for name, n := range c {
		if _, of, _ := strings.Cut(name, ".call."); n > 0 {
			list = append(list, fmt.Sprintf("%s %d", strings.Replace(of, ".result.", " ", 1), n))
		}
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// Calls reads them from the metrics.
func (g *Gateway) Calls(ctx context.Context) (Calls, error) {
	stats, err := g.Envoy.Admin.Stats(ctx, `pinwheel_agreement_calls_total`)
	return Calls(stats), err
}
