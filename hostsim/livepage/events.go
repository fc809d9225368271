package livepage

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/http"
	"time"
)

const (
	queued       = 4                // updates that wait for a viewer
	writeTimeout = 10 * time.Second // of one update
	heartbeat    = 2 * time.Second  // the longest time without an update
)

// viewer is one open page. Whoever does not take its updates misses them, and gets all that is kept when it does again.
type viewer struct {
	updates chan []byte
	behind  bool
}

// update is what a page is told. A snapshot has all that is kept, any other what is new since the one before it.
type update struct {
	Instance  string           `json:"instance"`
	Gateway   string           `json:"gateway"`
	Snapshot  bool             `json:"snapshot"`
	Count     uint64           `json:"count"` // decisions so far
	Rates     []int64          `json:"rates"` // requests in each of the last seconds
	Replicas  []replica        `json:"replicas"`
	Reasons   map[string]int64 `json:"reasons"`
	Decisions []decision       `json:"decisions"` // oldest first
	Sessions  []session        `json:"sessions"`  // newest first
}

// stream sends server-sent events until the viewer goes or the page is closed.
func (p *Page) stream(w http.ResponseWriter, r *http.Request) {
	v := p.join()
	if v == nil {
		w.Header().Set("Retry-After", "5")
		http.Error(w, "too many viewers", http.StatusServiceUnavailable)
		return
	}
	defer p.leave(v)
	w.Header().Set("Content-Type", "text/event-stream")
	out := http.NewResponseController(w)
	if _, err := w.Write([]byte("retry: 1000\n\n")); err != nil || out.Flush() != nil {
		return
	}
	for {
		select {
		case text, ok := <-v.updates:
			if !ok {
				return
			}
			_ = out.SetWriteDeadline(time.Now().Add(writeTimeout)) // where it fails, the kernel's own ends a dead viewer
			for _, piece := range [][]byte{[]byte("data: "), text, []byte("\n\n")} {
				if _, err := w.Write(piece); err != nil {
					return
				}
			}
			if out.Flush() != nil {
				return
			}
		case <-r.Context().Done():
			return
		}
	}
}

// join adds a viewer, whose first update is a snapshot; nil if there are too many. The first viewer starts the updates.
func (p *Page) join() *viewer {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || len(p.viewers) >= p.config.Viewers {
		return nil
	}
	v := &viewer{updates: make(chan []byte, queued), behind: true}
	p.viewers[v] = true
	if !p.running {
		p.running = true
		go p.run()
	}
	return v
}

func (p *Page) leave(v *viewer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.viewers, v)
}

// Close ends all streams of updates; later ones are refused.
func (p *Page) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	for v := range p.viewers {
		close(v.updates)
		delete(p.viewers, v)
	}
}

// run sends updates as long as somebody looks. Nothing here waits for a viewer.
func (p *Page) run() {
	ticker := time.NewTicker(p.config.Every)
	defer ticker.Stop()
	var told uint64
	var last []byte
	var at time.Time
	for first := true; ; first = false {
		replicas := p.replicas() // asks others, so without the lock
		now := time.Now()
		p.mu.Lock()
		if len(p.viewers) == 0 {
			p.running = false
			p.mu.Unlock()
			return
		}
		if first {
			told = p.state.count
		}
		text := p.encode(replicas, told, false, now)
		changed := p.state.count != told || !bytes.Equal(text, last) || now.Sub(at) >= heartbeat
		if changed {
			last, at = text, now
		}
		p.send(text, changed, func() []byte { return p.encode(replicas, 0, true, now) })
		told = p.state.count
		p.mu.Unlock()
		<-ticker.C
	}
}

// send queues an update, for those who are behind a snapshot. p.mu is held.
func (p *Page) send(text []byte, changed bool, snapshot func() []byte) {
	var whole []byte
	for v := range p.viewers {
		if len(v.updates) == cap(v.updates) {
			v.behind = v.behind || changed
			continue
		}
		switch {
		case v.behind:
			if whole == nil {
				whole = snapshot()
			}
			v.updates <- whole
			v.behind = false
		case changed:
			v.updates <- text
		}
	}
}

// encode makes the update about all after the first n decisions. p.mu is held.
func (p *Page) encode(replicas []replica, n uint64, snapshot bool, now time.Time) []byte {
	u := update{Instance: p.instance, Gateway: p.config.Gateway, Snapshot: snapshot, Count: p.state.count, Rates: p.state.rates(now), Replicas: replicas, Reasons: maps.Clone(p.state.reasons)}
	u.Decisions, u.Sessions = p.state.since(n)
	text, err := json.Marshal(u)
	if err != nil {
		return []byte("{}") // no float here is NaN, and nothing else can fail
	}
	return text
}
