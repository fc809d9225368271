// Package replica simulates model servers, to see what routing does to their prefix caches: no model, no GPU.
//
// Engine is one server's scheduler, memory and prefix cache on a clock of the caller's, for fleets that play for hours in
// seconds. Server is a server behind OpenAI's HTTP interface: only the cache's bookkeeping and, if wanted, the time that
// prefill and decode would take.
//
// A Server's prompt is a list of blocks of Config.BlockTokens tokens. A hand-made chat is cut into blocks by its JSON text,
// at BytesPerToken bytes a token. A recorded one brings its blocks in the body, instead of or beside the messages:
//
//	{"model": "sim", "max_tokens": 131, "sim_prompt": {"tokens": 68244, "blocks": [[4294967297, 1066]]}}
package replica

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"
)

// ReplicaHeader is the response header in which a simulated replica tells its name.
const ReplicaHeader = "x-sim-replica"

// ErrConfig is wrapped by every error of Config.Validate.
var ErrConfig = errors.New("replica: bad configuration")

// Config describes one simulated model server.
type Config struct {
	// Name is how the replica calls itself in headers, answers and metrics; usually its address. Required.
	Name string
	// Model is the model's name in the list of models and in answers to requests that name none. Empty means "sim".
	Model string
	// BlockTokens is the size of a cache block in tokens. Zero means 64.
	BlockTokens int
	// CacheBlocks is the prefix cache's capacity in blocks. Zero means without bound.
	CacheBlocks int
	// PrefillPerToken is the time for one prompt token that is not cached; zero or more.
	PrefillPerToken time.Duration
	// DecodePerToken is the time for one generated token; zero or more.
	DecodePerToken time.Duration
	// TimeScale multiplies both times. Zero means that every answer comes at once.
	TimeScale float64
	// MaxBodyBytes bounds a request body. Zero means 64 MiB.
	MaxBodyBytes int64
	// Wait pauses for d, or until the context ends, whose error it then returns. Nil means a real timer.
	Wait func(ctx context.Context, d time.Duration) error
}

// Validate reports the first field that is out of range, as an error that wraps ErrConfig.
func (c *Config) Validate() error {
	switch {
	case c.Name == "":
		return fmt.Errorf("%w: Name is empty", ErrConfig)
	case c.BlockTokens < 0:
		return fmt.Errorf("%w: BlockTokens %d is negative", ErrConfig, c.BlockTokens)
	case c.CacheBlocks < 0:
		return fmt.Errorf("%w: CacheBlocks %d is negative", ErrConfig, c.CacheBlocks)
	case c.PrefillPerToken < 0 || c.DecodePerToken < 0:
		return fmt.Errorf("%w: a time per token is negative", ErrConfig)
	case !(c.TimeScale >= 0 && c.TimeScale <= 1e6):
		return fmt.Errorf("%w: TimeScale %v is outside 0 to 1e6", ErrConfig, c.TimeScale)
	case c.MaxBodyBytes < 0:
		return fmt.Errorf("%w: MaxBodyBytes %d is negative", ErrConfig, c.MaxBodyBytes)
	}
	return nil
}

// Stats is what a replica has done so far. All numbers are zero or more.
type Stats struct {
	Requests     int64 // completions admitted, whatever became of them
	PromptTokens int64
	CachedTokens int64 // of PromptTokens, those that were not computed again
	OutputTokens int64 // generated and sent
	Running      int64 // admitted and not yet ended
	CacheBlocks  int64 // blocks in the cache now
}

// Server is one simulated model server, an http.Handler for POST /v1/chat/completions, POST /v1/completions,
// GET /v1/models, GET /health and GET /metrics. Safe for concurrent use. Prompts are admitted one after another; their waiting
// times overlap without slowing each other down.
type Server struct {
	config Config
	mux    http.ServeMux

	mu    sync.Mutex
	cache *PrefixCache
	stats Stats
}

// New returns a replica with an empty cache.
func New(c Config) (*Server, error) {
	if err := c.Validate(); err != nil {
		return nil, err
	}
	if c.Model == "" {
		c.Model = "sim"
	}
	if c.BlockTokens == 0 {
		c.BlockTokens = 64
	}
	if c.MaxBodyBytes == 0 {
		c.MaxBodyBytes = 64 << 20
	}
	if c.Wait == nil {
		c.Wait = waitTimer
	}
	s := &Server{config: c, cache: NewPrefixCache(c.CacheBlocks)}
	s.mux.HandleFunc("POST /v1/chat/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, true) })
	s.mux.HandleFunc("POST /v1/completions", func(w http.ResponseWriter, r *http.Request) { s.complete(w, r, false) })
	s.mux.HandleFunc("GET /v1/models", s.serveModels)
	s.mux.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	s.mux.HandleFunc("GET /metrics", s.serveMetrics)
	s.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		refuse(w, http.StatusNotFound, fmt.Errorf("%s %s is not simulated; POST /v1/chat/completions, POST /v1/completions, GET /v1/models, "+
			"GET /health and GET /metrics are; an SDK's base URL ends in /v1", r.Method, r.URL.Path))
	})
	return s, nil
}

// ServeHTTP implements http.Handler. Every answer, errors too, carries ReplicaHeader.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set(ReplicaHeader, s.config.Name)
	s.mux.ServeHTTP(w, r)
}

// Stats returns a consistent copy of the counters.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := s.stats
	st.CacheBlocks = int64(s.cache.Len())
	return st
}

// admit looks the prompt up, takes it into the cache, and returns how many of its tokens need not be computed. The
// prompt's last token always is: something has to be computed for the model to answer.
func (s *Server) admit(p *prompt) (cached int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	hits := min(s.cache.Admit(p.blocks), (p.tokens-1)/s.config.BlockTokens)
	cached = hits * s.config.BlockTokens
	s.stats.Requests++
	s.stats.PromptTokens += int64(p.tokens)
	s.stats.CachedTokens += int64(cached)
	s.stats.Running++
	return cached
}

func (s *Server) end(generated int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stats.Running--
	s.stats.OutputTokens += int64(generated)
}

// pause waits for tokens times perToken, scaled. It is where a request whose client has gone stops.
func (s *Server) pause(ctx context.Context, tokens int, perToken time.Duration) error {
	d := time.Duration(float64(tokens) * float64(perToken) * s.config.TimeScale)
	if d <= 0 {
		return ctx.Err()
	}
	return s.config.Wait(ctx, d)
}

func waitTimer(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
