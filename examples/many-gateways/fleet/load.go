package fleet

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Load is sessions and their turns.
type Load struct {
	// Name begins the sessions' ids.
	Name string
	// Sessions is how many there are, Turns how many each has, at the gateways in turn: every second session begins at the
	// second one.
	Sessions, Turns int
	// Raced sends each first turn to all gateways at the same moment. It is a turn more at each but one.
	Raced bool
	// Every is the time between the beginnings of two sessions. 0: Clients begin them, one after another each.
	Every   time.Duration
	Clients int
	// Gap is the time between two turns of a session.
	Gap time.Duration
}

// Session is what came of one.
type Session struct {
	ID      string
	Answers []Answer
}

// Run sends the load, and returns what came of it when all is answered. After the end of ctx it begins no session.
func (f *Fleet) Run(ctx context.Context, l Load) Sessions {
	all := make(Sessions, l.Sessions)
	for i := range all {
		all[i].ID = fmt.Sprintf("%s-%d", l.Name, i)
	}
	f.each(ctx, l, func(i int) { f.session(&all[i], i, l) })
	return slices.DeleteFunc(all, func(s Session) bool { return len(s.Answers) == 0 })
}

// More sends further turns of the same sessions; the load says how.
func (f *Fleet) More(ctx context.Context, all Sessions, l Load) Sessions {
	l.Sessions = len(all)
	more := make(Sessions, len(all))
	for i := range all {
		more[i].ID = all[i].ID
	}
	f.each(ctx, l, func(i int) { f.session(&more[i], i, l) })
	return more
}

// each calls do for each session, when its time comes.
func (f *Fleet) each(ctx context.Context, l Load, do func(i int)) {
	var running sync.WaitGroup
	if l.Every == 0 {
		next := make(chan int)
		for range max(1, l.Clients) {
			running.Go(func() {
				for i := range next {
					do(i)
				}
			})
		}
		for i := 0; i < l.Sessions && ctx.Err() == nil; i++ {
			next <- i
		}
		close(next)
		running.Wait()
		return
	}
	begin := time.Now()
	for i := 0; i < l.Sessions; i++ {
		time.Sleep(time.Until(begin.Add(time.Duration(i) * l.Every)))
		if ctx.Err() != nil {
			break
		}
		running.Go(func() { do(i) })
	}
	running.Wait()
}

// session sends one session's turns. Those that began are finished, whatever the context says.
func (f *Fleet) session(s *Session, i int, l Load) {
	ctx := context.Background()
	for turn := range l.Turns {
		if turn > 0 {
			time.Sleep(l.Gap)
		}
		if turn == 0 && l.Raced {
			s.Answers = append(s.Answers, f.race(ctx, s.ID)...)
			continue
		}
		n := (i + turn) % len(f.Gateways)
		a := f.Gateways[n].Turn(ctx, s.ID)
		a.Gateway = n
		s.Answers = append(s.Answers, a)
	}
}

func (f *Fleet) race(ctx context.Context, id string) []Answer {
	answers := make([]Answer, len(f.Gateways))
	gate := make(chan struct{})
	var all sync.WaitGroup
	for n, g := range f.Gateways {
		all.Go(func() {
			<-gate
			answers[n] = g.Turn(ctx, id)
			answers[n].Gateway = n
		})
	}
	close(gate)
	all.Wait()
	return answers
}

// Sessions are those of a load.
type Sessions []Session

// IDs are their ids.
func (all Sessions) IDs() []string {
	ids := make([]string, len(all))
	for i, s := range all {
		ids[i] = s.ID
	}
	return ids
}

// Homes are where each session's last turn was served.
func (all Sessions) Homes() map[string]string {
	homes := map[string]string{}
	for _, s := range all {
		if n := len(s.Answers); n > 0 {
			homes[s.ID] = s.Answers[n-1].Home
		}
	}
	return homes
}

// Failed are the turns that a client saw fail, with what it saw.
func (all Sessions) Failed() (failed []string) {
	for _, s := range all {
		for i, a := range s.Answers {
			if why := a.Failed(); why != "" {
				failed = append(failed, fmt.Sprintf("%s, answer %d, at gateway %d: %s", s.ID, i, a.Gateway, why))
			}
		}
	}
	return failed
}

// Disagreeing are the sessions of which two turns were served by different replicas, with where.
func (all Sessions) Disagreeing() (list []string) {
	for _, s := range all {
		if len(s.Answers) == 0 {
			continue
		}
		text, differs := s.ID+":", false
		for _, a := range s.Answers {
			text += fmt.Sprintf(" %d %s %s,", a.Gateway, a.Home, a.Reason)
			differs = differs || a.Home != s.Answers[0].Home
		}
		if differs {
			list = append(list, text)
		}
	}
	return list
}

// Turns counts the answers.
func (all Sessions) Turns() (n int) {
	for _, s := range all {
		n += len(s.Answers)
	}
	return n
}

// Spread counts the sessions of each of the replicas, by each session's last turn.
func (all Sessions) Spread(replicas []string) []int {
	counts := make([]int, len(replicas))
	for _, home := range all.Homes() {
		if i := slices.Index(replicas, home); i >= 0 {
			counts[i]++
		}
	}
	return counts
}

// Took are the latencies of the turns for which the condition holds, in order.
func (all Sessions) Took(of func(turn int, a Answer) bool) []time.Duration {
	var took []time.Duration
	for _, s := range all {
		for i, a := range s.Answers {
			if of(i, a) {
				took = append(took, a.Took)
			}
		}
	}
	slices.Sort(took)
	return took
}

// Any holds for every turn.
func Any(int, Answer) bool { return true }

// Quantile is that of sorted values, or 0 where there are none.
func Quantile[T cmp.Ordered](sorted []T, q float64) (v T) {
	if len(sorted) == 0 {
		return v
	}
	return sorted[int(q*float64(len(sorted)-1))]
}
