package replay

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"math/big"
	"testing"
)

func baselineOf(t *testing.T, name string, fleet []Member) Router {
	t.Helper()
	f, err := Baseline(name)
	if err != nil {
		t.Fatal(err)
	}
	r, err := f(t.Context(), 0, 0, fleet)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func choice(t *testing.T, r Router, session string, client int) int {
	t.Helper()
	d, err := r.Turn(0, &Turn{Session: session, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	return d.Replica
}

// Each process numbers the sessions that it sees; a session is as sticky as its processes.
func TestPerProcessCounter(t *testing.T) {
	r := baselineOf(t, PerProcessCounter, make([]Member, 3))
	steps := []struct {
		session string
		client  int
		want    int
	}{{"a", 0, 0}, {"b", 0, 1}, {"b", 1, 0}, {"a", 1, 1}, {"c", 0, 2}, {"d", 0, 0}, {"b", 0, 1}, {"b", 1, 0}, {"e", 2, 0}}
	for i, s := range steps {
		if got := choice(t, r, s.session, s.client); got != s.want {
			t.Errorf("step %d: session %s by process %d goes to %d, want %d", i, s.session, s.client, got, s.want)
		}
		if i == 5 { // an end changes no number
			r.Finish(0, "a")
		}
	}
}

func TestSessionHash(t *testing.T) {
	r := baselineOf(t, SessionHash, []Member{{}, {Gone: true}, {}, {}})
	for i := range 100 {
		session := fmt.Sprintf("session-%d", i)
		sum := sha256.Sum256([]byte(session))
		rest := new(big.Int).Mod(new(big.Int).SetBytes(sum[:8]), big.NewInt(3)).Int64()
		if got, want := choice(t, r, session, i), []int{0, 2, 3}[rest]; got != want {
			t.Errorf("%s goes to %d, want %d", session, got, want)
		}
	}
}

func TestRoundRobin(t *testing.T) {
	r := baselineOf(t, RoundRobin, []Member{{}, {}, {Gone: true}, {}})
	for i := range 7 {
		if got, want := choice(t, r, "a", 0), []int{0, 1, 3}[i%3]; got != want {
			t.Errorf("request %d goes to %d, want %d", i, got, want)
		}
	}
	r.Members(0, make([]Member, 2))
	if a, b := choice(t, r, "a", 0), choice(t, r, "a", 0); a+b != 1 {
		t.Errorf("two replicas are left, requests go to %d and %d", a, b)
	}
}

func TestLeastRequests(t *testing.T) {
	r := baselineOf(t, LeastRequests, make([]Member, 3))
	for i := range 6 { // ties rotate
		if got := choice(t, r, "a", 0); got != i%3 {
			t.Errorf("request %d goes to %d", i, got)
		}
	}
	r.Done(0, Decision{Replica: 1}, 200)
	if got := choice(t, r, "a", 0); got != 1 {
		t.Errorf("the replica with the fewest is 1, the request goes to %d", got)
	}
	r.Members(0, make([]Member, 4))
	if a, b := choice(t, r, "a", 0), choice(t, r, "a", 0); a != 3 || b != 3 {
		t.Errorf("a new replica has none, requests go to %d and %d", a, b)
	}
}

func TestNoBaseline(t *testing.T) {
	if _, err := Baseline("x"); !errors.Is(err, ErrCampaign) {
		t.Errorf("%v", err)
	}
	for _, name := range Baselines() {
		r := baselineOf(t, name, []Member{{Gone: true}})
		if got := choice(t, r, "a", 0); got != -1 {
			t.Errorf("%s: nobody is there, the request goes to %d", name, got)
		}
	}
}

// What the published campaign shows in small: sessions that each process places anew lose their prefixes.
func TestStickyBeatsPerProcess(t *testing.T) {
	sessions := talks(30, 12, 320)
	rate := func(name string) float64 {
		c := campaign(sessions, 5)
		c.Clients = 4
		var err error
		if c.NewRouter, err = Baseline(name); err != nil {
			t.Fatal(err)
		}
		return play(t, c).HitRate
	}
	counter, hash, robin := rate(PerProcessCounter), rate(SessionHash), rate(RoundRobin)
	if !(robin < counter && counter < hash) {
		t.Errorf("hit rates: round robin %.3f, per process %.3f, hash %.3f", robin, counter, hash)
	}
}
