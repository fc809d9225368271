package livepage

import (
	"container/list"
	"slices"
	"time"

	"github.com/pinwheel-proxy/pinwheel/hostsim/gateway"
)

// Bounds of what a page remembers, in entries.
const (
	keptDecisions = 60
	keptSessions  = 256
	keptReasons   = 24
	keptSeconds   = 60
	longest       = 256 // bytes of a text that a client or a plugin has sent
)

// decision is one request as the stream of decisions shows it.
type decision struct {
	At       int64   `json:"at"` // Unix time in ms
	Session  string  `json:"session"`
	Reason   string  `json:"reason"`
	Upstream string  `json:"upstream"`
	Status   int     `json:"status"` // 0: the client got none
	Attempts int     `json:"attempts"`
	Millis   float64 `json:"millis"` // to the response's headers
}

// session is where a session was served last.
type session struct {
	Name  string `json:"name"`
	Home  string `json:"home"`
	Turns int    `json:"turns"`
	At    int64  `json:"at"` // Unix time in ms

	changed uint64 // the number of the decision that changed it
}

// state is what has been seen of requests. Its memory is bounded.
type state struct {
	count     uint64 // decisions so far
	decisions []decision
	sessions  map[string]*list.Element // of *session
	recent    *list.List               // of *session, newest first
	reasons   map[string]int64
	seconds   [keptSeconds]int64 // requests begun, by the second modulo keptSeconds
	second    int64              // the newest one, Unix time
}

func newState() state {
	return state{sessions: map[string]*list.Element{}, recent: list.New(), reasons: map[string]int64{}}
}

// Headers notes a request whose response has begun. It is for gateway.Config.OnHeaders.
func (p *Page) Headers(a *gateway.Access) { p.note(a) }

// End notes a request that ended without any response. It is for gateway.Config.OnEnd.
func (p *Page) End(a *gateway.Access) {
	if a.Status == 0 {
		p.note(a)
	}
}

func (p *Page) note(a *gateway.Access) {
	d := decision{At: a.Began.UnixMilli(), Session: short(p.config.Session(a.Request)), Reason: short(a.Response.Get(p.config.ReasonHeader)),
		Upstream: a.Upstream, Status: a.Status, Attempts: a.Attempts, Millis: float64(a.Duration.Microseconds()) / 1000}
	if d.Reason == "" {
		d.Reason = short(a.Detail)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.state.add(d, time.Now())
}

// short bounds a text that others have chosen.
func short(s string) string {
	if len(s) <= longest {
		return s
	}
	return s[:longest] + "..."
}

func (s *state) add(d decision, now time.Time) {
	s.count++
	if len(s.decisions) == keptDecisions {
		s.decisions = slices.Delete(s.decisions, 0, 1)
	}
	s.decisions = append(s.decisions, d)
	s.tick(now)
	s.seconds[now.Unix()%keptSeconds]++
	if reason := d.Reason; reason != "" {
		if _, ok := s.reasons[reason]; !ok && len(s.reasons) >= keptReasons {
			reason = "other"
		}
		s.reasons[reason]++
	}
	if d.Session == "" || d.Upstream == "" {
		return
	}
	e := s.sessions[d.Session]
	if e == nil {
		e = s.recent.PushFront(&session{Name: d.Session})
		s.sessions[d.Session] = e
		if s.recent.Len() > keptSessions {
			oldest := s.recent.Remove(s.recent.Back()).(*session)
			delete(s.sessions, oldest.Name)
		}
	}
	s.recent.MoveToFront(e)
	known := e.Value.(*session)
	known.Home, known.At, known.changed = d.Upstream, d.At, s.count
	known.Turns++
}

// tick clears the seconds between the last request and now.
func (s *state) tick(now time.Time) {
	for n := max(s.second+1, now.Unix()-keptSeconds+1); n <= now.Unix(); n++ {
		s.seconds[n%keptSeconds] = 0
	}
	s.second = max(s.second, now.Unix())
}

// rates are the requests of the last full seconds, oldest first.
func (s *state) rates(now time.Time) []int64 {
	s.tick(now)
	out := make([]int64, 0, keptSeconds-1)
	for n := now.Unix() - keptSeconds + 1; n < now.Unix(); n++ {
		out = append(out, s.seconds[n%keptSeconds])
	}
	return out
}

// since returns the decisions after the first n, oldest first, as far as they are kept, and the sessions that they have
// changed.
func (s *state) since(n uint64) ([]decision, []session) {
	fresh := min(s.count-n, uint64(len(s.decisions)))
	sessions := []session{}
	for e := s.recent.Front(); e != nil; e = e.Next() {
		if known := e.Value.(*session); known.changed > n {
			sessions = append(sessions, *known)
		}
	}
	return append([]decision{}, s.decisions[uint64(len(s.decisions))-fresh:]...), sessions
}
